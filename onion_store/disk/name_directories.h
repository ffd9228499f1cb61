// The directories above the names of files. They are made with a name, and removed again if the
// name is not made after all.
//
// A refused fork leaves no empty directory. But the creation of another file may have found that
// directory, and have put nothing into it yet: removing the directory would make that creation
// fail. So each creation holds a Use, from before it looks for its directories until its own name
// is in them.
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

  // The creation of one name, by one thread. While it lives, no other Use removes a directory above
  // the name. Any number of Uses of one name may live.
  class Use {
   public:
    // `directories` must outlive it.
    Use(NameDirectories& directories, std::string_view name);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // After Abandon() it may remove directories. Ignores errors of the disk.
    ~Use();

    // Makes the missing directories. Errors as EnvTree::MakeDirectory().
    absl::Status Make(uint32_t mode_bits);
    // The name was not made. The last of the overlapping uses removes those of the name's
    // directories that are empty and that one of these uses has made.
    void Abandon();
    // The directories stay, even if empty: a name may be made in them after this use has ended.
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

  // Held while an empty directory is removed: a use that begins meanwhile finds it gone.
  absl::Mutex mutex_;
  EnvTree& tree_;
  DurableNames& durable_names_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_NAME_DIRECTORIES_H_
