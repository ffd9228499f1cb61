// Time, behind an interface so that tests need not wait.
#ifndef H5MIRROR_BASE_CLOCK_H_
#define H5MIRROR_BASE_CLOCK_H_

#include <time.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace h5mirror {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Time of day, for people and for the history. May jump.
  virtual absl::Time Now() = 0;
  // Time since an arbitrary start. Never jumps, and goes on while the machine is suspended. For
  // deadlines and leases.
  virtual absl::Duration Monotonic() = 0;
  // Releases `mutex` until `condition` holds, at most for `timeout`.
  virtual void Await(absl::Mutex& mutex, const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex.AwaitWithTimeout(condition, timeout);
  }
};

class SystemClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Monotonic() override {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  }
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CLOCK_H_
