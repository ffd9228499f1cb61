// A question that many callers ask at once. Each needs an answer from after its own call began.
#ifndef H5MIRROR_SWMR_AGENT_BATCHED_CALL_H_
#define H5MIRROR_SWMR_AGENT_BATCHED_CALL_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::agent {

// A caller that comes while a call is under way shares the next one. So an answer is never of a
// call that began before its caller came. A hundred callers make two or three calls. Thread-safe.
template <typename Answer>
class BatchedCall {
 public:
  // `ask` is called by one thread at a time. It may be the `ask` of any of the waiting callers.
  absl::StatusOr<Answer> Ask(absl::FunctionRef<absl::StatusOr<Answer>()> ask) {
    absl::MutexLock lock(&mutex_);
    const uint64_t wanted = begun_ + 1;
    while (done_ < wanted) {
      if (is_asking_) {
        answered_.Wait(&mutex_);
        continue;
      }
      is_asking_ = true;
      const uint64_t number = ++begun_;
      mutex_.Unlock();
      absl::StatusOr<Answer> answer = ask();
      mutex_.Lock();
      answer_ = std::move(answer);
      done_ = number;
      is_asking_ = false;
      answered_.SignalAll();
    }
    return answer_;
  }

 private:
  absl::Mutex mutex_;
  absl::CondVar answered_;
  bool is_asking_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::StatusOr<Answer> answer_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("not asked");
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_BATCHED_CALL_H_
