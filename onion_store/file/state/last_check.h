// The last comparison of a file with its original (File::RecordCheck), as the index has it.
#ifndef H5MIRROR_ONION_STORE_FILE_STATE_LAST_CHECK_H_
#define H5MIRROR_ONION_STORE_FILE_STATE_LAST_CHECK_H_

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// Thread-safe. Its lock is held over the first read of the index; no other lock but that of the
// index is taken under it.
class LastCheck {
 public:
  // Reads it from `index` once. Unset: there is none, or it is damaged. It is only for people, and
  // the next check replaces it, so damage is no reason to refuse the file. A verification reports
  // the damage.
  std::optional<CheckInfo> Get(VersionIndex& index) {
    absl::MutexLock lock(&mutex_);
    if (!known_) known_ = index.LastCheck().value_or(std::nullopt);
    return *known_;
  }
  // The index has `check` now.
  void Set(const CheckInfo& check) {
    absl::MutexLock lock(&mutex_);
    known_ = std::optional<CheckInfo>(check);
  }

 private:
  absl::Mutex mutex_;
  std::optional<std::optional<CheckInfo>> known_ ABSL_GUARDED_BY(mutex_);  // unset: not read yet
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_STATE_LAST_CHECK_H_
