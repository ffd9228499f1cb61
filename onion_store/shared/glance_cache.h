// Keeps what was last seen of closed files, for lists of many files:
// docs/design/046-large-roots.md.
#ifndef H5MIRROR_ONION_STORE_SHARED_GLANCE_CACHE_H_
#define H5MIRROR_ONION_STORE_SHARED_GLANCE_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// Thread-safe. An entry is true until the file is opened, or its name gets another file:
//
//   Begin() --> the file is opened, looked at and closed --> Put()
//   Forget(), by every other call that has opened the file: makes the Put() of an earlier look void
class GlanceCache {
 public:
  // `bytes_max`: about the bytes for all names together. Beyond this no more names are taken in: if
  // old names made room for new ones, a list that is read again and again would find none.
  explicit GlanceCache(uint64_t bytes_max = uint64_t{16} << 20) : bytes_max_(bytes_max) {}

  // Names a look; never 0.
  using Look = uint64_t;
  Look Begin(std::string_view name);
  // Keeps what the look has seen of the file in `listed`.
  void Put(const FileSummary& listed, FileInfo info, Look look);
  // The look has ended, with or without a Put().
  void End(std::string_view name, Look look);

  // nullptr: not known, or the head has another size or time.
  std::shared_ptr<const FileInfo> Find(const FileSummary& listed) const;
  // The file has been opened, or the name has another file, or none.
  void Forget(std::string_view name);

 private:
  struct Entry {
    uint64_t size_bytes = 0;
    absl::Time modify_time;
    std::shared_ptr<const FileInfo> info;
    uint64_t cost_bytes = 0;
  };

  void Erase(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t bytes_max_;
  mutable absl::Mutex mutex_;
  Look last_look_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, Look> looks_ ABSL_GUARDED_BY(mutex_);  // newest, by name
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_GLANCE_CACHE_H_
