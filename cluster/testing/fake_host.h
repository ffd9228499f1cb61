// Stores that open and close when the test says so, for tests.
#ifndef H5MIRROR_CLUSTER_TESTING_FAKE_HOST_H_
#define H5MIRROR_CLUSTER_TESTING_FAKE_HOST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/strings.h"
#include "cluster/node.h"

namespace h5mirror::cluster {

// Thread-safe.
class FakeHost final : public CellHost {
 public:
  void Open(const std::string& cell, uint64_t epoch, Recovery recovery, Done done) override {
    const char* const how = recovery == Recovery::kNeeded ? " recovers" : " clean";
    Take(StrCat("open ", cell, "@", epoch, how), std::move(done));
  }
  // No call of its own in calls(), unless it is to fail.
  void Retire(const std::string& cell, uint64_t epoch, Done done) override {
    const absl::Status result = retire_result();
    if (!result.ok()) Note(StrCat("retire ", cell, "@", epoch));
    done(result);
  }
  void Close(const std::string& cell, uint64_t epoch, Done done) override {
    Take(StrCat("close ", cell, "@", epoch), std::move(done));
  }
  void Served(const std::string& cell, uint64_t epoch) override {
    absl::MutexLock lock(&mutex_);
    served_.push_back(StrCat(cell, "@", epoch));
  }
  // Of Served(): "x@3"; in order.
  std::vector<std::string> served() const {
    absl::MutexLock lock(&mutex_);
    return served_;
  }
  // Sessions do not end in time, as long as it is not OK.
  void SetRetireResult(const absl::Status& result) {
    absl::MutexLock lock(&mutex_);
    retire_result_ = result;
  }

  // Calls end at once with it; unset by Hold().
  void SetResult(const absl::Status& result) {
    absl::MutexLock lock(&mutex_);
    result_ = result;
    holds_ = false;
  }
  // Calls do not end before Release().
  void Hold() {
    absl::MutexLock lock(&mutex_);
    holds_ = true;
  }
  void Release(const absl::Status& result) {
    std::vector<Done> held;
    {
      absl::MutexLock lock(&mutex_);
      held.swap(held_);
    }
    for (const Done& done : held) done(result);
  }
  // "open x@3 recovers", "open x@3 clean", "close x@3"; in order.
  std::vector<std::string> calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  absl::Status retire_result() const {
    absl::MutexLock lock(&mutex_);
    return retire_result_;
  }
  void Note(std::string call) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }
  void Take(std::string call, Done done) {
    absl::Status result;
    {
      absl::MutexLock lock(&mutex_);
      calls_.push_back(std::move(call));
      if (holds_) {
        held_.push_back(std::move(done));
        return;
      }
      result = result_;
    }
    done(result);
  }

  mutable absl::Mutex mutex_;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  absl::Status retire_result_ ABSL_GUARDED_BY(mutex_);
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> served_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TESTING_FAKE_HOST_H_
