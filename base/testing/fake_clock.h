// Time that tests move.
#ifndef H5MIRROR_BASE_TESTING_FAKE_CLOCK_H_
#define H5MIRROR_BASE_TESTING_FAKE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror {

// Stands still until it is told to move.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch()) : now_(start) {}

  absl::Time Now() override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  absl::Duration Monotonic() override {
    absl::MutexLock lock(&mutex_);
    return monotonic_;
  }
  // Moves both times forward.
  void Advance(absl::Duration duration) {
    absl::MutexLock lock(&mutex_);
    now_ += duration;
    monotonic_ += duration;
  }
  // Sets the time of day only, as an administrator or NTP would.
  void SetNow(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    now_ = now;
  }

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  absl::Duration monotonic_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_FAKE_CLOCK_H_
