// Which directories of the store are known to survive power loss.
#ifndef H5MIRROR_ONION_STORE_DISK_DURABLE_NAMES_H_
#define H5MIRROR_ONION_STORE_DISK_DURABLE_NAMES_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"

namespace h5mirror::store {

// Thread-safe. Files come and go in few directories: each needs its name synced once in the life of
// a store, whoever made it and whenever that was.
class DurableNames {
 public:
  // Syncs the parent of the directory `name`, unless that was done since it was made.
  absl::Status Sync(EnvTree& tree, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, uint64_t> inodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_DURABLE_NAMES_H_
