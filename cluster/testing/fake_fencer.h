// A fencer that notes its targets, for tests.
#ifndef H5MIRROR_CLUSTER_TESTING_FAKE_FENCER_H_
#define H5MIRROR_CLUSTER_TESTING_FAKE_FENCER_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/fencer.h"

namespace h5mirror::cluster {

// Thread-safe.
class FakeFencer final : public Fencer {
 public:
  absl::Status Fence(const FenceTarget& target) override {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(target.session);
    return result_;
  }

  void SetResult(const absl::Status& result) {
    absl::MutexLock lock(&mutex_);
    result_ = result;
  }
  // The sessions of all calls, failed ones too.
  std::vector<std::string> calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TESTING_FAKE_FENCER_H_
