// Owners of closed files, as read from the disk.
#ifndef H5MIRROR_ONION_STORE_SHARED_OWNER_CACHE_H_
#define H5MIRROR_ONION_STORE_SHARED_OWNER_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::store {

// Thread-safe. Has only names of existing files: a name without a file costs no memory.
class OwnerCache {
 public:
  // About as many bytes for all names together; beyond this it begins anew.
  explicit OwnerCache(uint64_t bytes_max = uint64_t{16} << 20) : bytes_max_(bytes_max) {}

  // A moment: an owner read from the disk after it is true as long as nothing changes.
  uint64_t Now() const;
  // nullopt: not known.
  std::optional<std::string> Find(std::string_view name) const;
  // Keeps an owner that was read after `moment`, unless an owner has changed since.
  void Put(std::string_view name, std::string_view owner, uint64_t moment);
  // The file of that name has another owner, or the name another file, or none.
  void Forget(std::string_view name);

 private:
  const uint64_t bytes_max_;
  mutable absl::Mutex mutex_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::string> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_OWNER_CACHE_H_
