// The directories of the store whose names are known to survive power loss.
#ifndef H5MIRROR_ONION_STORE_DISK_DURABLE_NAMES_H_
#define H5MIRROR_ONION_STORE_DISK_DURABLE_NAMES_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"

namespace h5mirror::store {

// Thread-safe. The name of each directory is synced once in the life of a store, even if the
// directory existed before.
class DurableNames {
 public:
  // Syncs the parent of the directory `name`, unless this was done since the directory was made.
  absl::Status Sync(EnvTree& tree, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // The directory `name` was removed.
  void Forget(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    inodes_.erase(name);
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, uint64_t> inodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_DURABLE_NAMES_H_
