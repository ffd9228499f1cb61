// The directories above the names of files: they are made with a name, and go with it where the
// name came to nothing.
//
// A fork that is refused leaves no empty directory. But another file's creation may have found that
// directory there, and has nothing in it yet: to remove it would fail that one. So each creation
// tells of itself by a Use, from before it looks for its directories until its own name is in them.
//
//   Use -- Make() --> the name is made there, or Abandon() --> ~Use
//                                        of the last one: what was made meanwhile and abandoned
//                                        goes
#ifndef H5MIRROR_ONION_STORE_DISK_NAME_DIRECTORIES_H_
#define H5MIRROR_ONION_STORE_DISK_NAME_DIRECTORIES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "onion_store/disk/durable_names.h"

namespace h5mirror::store {

// Thread-safe.
class NameDirectories {
 public:
  // Both must outlive this.
  NameDirectories(EnvTree& tree, DurableNames& durable_names)
      : tree_(tree), durable_names_(durable_names) {}

  // The creation of one name, by one thread. While it lives, no directory above the name is removed
  // by another Use. Any number of one name may live.
  class Use {
   public:
    // `directories` must outlive it.
    Use(NameDirectories& directories, std::string_view name);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // After Abandon() it may remove directories. Ignores errors of the disk.
    ~Use();

    // Makes those directories that are not there. Errors as EnvTree::MakeDirectory().
    absl::Status Make(uint32_t mode_bits);
    // The name came to nothing. Those of its directories that a Use has made since the first of all
    // uses that overlap until now, and that are empty, go with the last use.
    void Abandon();
    // The directories stay, also empty: a name may come to them after this has ended.
    void Keep();

   private:
    NameDirectories& directories_;
    const std::vector<std::string> above_;  // from the root on
  };

 private:
  // A directory with uses.
  struct Entry {
    int uses = 0;
    bool was_made = false;  // since the first of these uses
    bool is_abandoned = false;
    bool stays = false;
  };

  // Held over the removal of an empty directory: a use that begins meanwhile finds it gone.
  absl::Mutex mutex_;
  EnvTree& tree_;
  DurableNames& durable_names_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_NAME_DIRECTORIES_H_
