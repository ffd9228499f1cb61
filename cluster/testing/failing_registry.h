// A client of a registry whose calls fail on demand, for tests.
#ifndef H5MIRROR_CLUSTER_TESTING_FAILING_REGISTRY_H_
#define H5MIRROR_CLUSTER_TESTING_FAILING_REGISTRY_H_

#include <atomic>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// Thread-safe.
class FailingRegistry final : public Registry {
 public:
  // `registry` must outlive this.
  explicit FailingRegistry(Registry& registry) : registry_(registry) {}

  // All calls fail with it, without effect; OK: none does.
  void FailAll(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    failure_ = status;
  }
  // The next change happens, and its answer is lost.
  void LoseNextAnswer() { LoseAnswerOf(change_count_ + 1); }
  // The same for the change with this number, counted from 1 on.
  void LoseAnswerOf(int change) { lost_change_ = change; }
  // Called before the next change, once: what another client does meanwhile.
  void BeforeNextChange(std::function<void()> action) {
    absl::MutexLock lock(&mutex_);
    before_next_change_ = std::move(action);
  }
  int change_count() const { return change_count_; }

  absl::StatusOr<RegistryView> ReadAll() override {
    if (absl::Status status = failure(); !status.ok()) return status;
    return registry_.ReadAll();
  }
  absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) override {
    if (absl::Status status = failure(); !status.ok()) return status;
    return registry_.Read(names);
  }
  absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                             absl::Span<const NewText> changes) override {
    if (absl::Status status = failure(); !status.ok()) return status;
    const int number = ++change_count_;
    std::function<void()> before;
    {
      absl::MutexLock lock(&mutex_);
      before = std::exchange(before_next_change_, nullptr);
    }
    if (before != nullptr) before();
    absl::Status result = registry_.CompareAndSet(expected, changes);
    if (number == lost_change_) return absl::UnavailableError("the answer is lost");
    return result;
  }

 private:
  absl::Status failure() const {
    absl::MutexLock lock(&mutex_);
    return failure_;
  }

  Registry& registry_;
  std::atomic<int> lost_change_{0};
  std::atomic<int> change_count_{0};
  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> before_next_change_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TESTING_FAILING_REGISTRY_H_
