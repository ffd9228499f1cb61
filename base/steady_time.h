// Time for deadlines: it cannot be set.
#ifndef H5MIRROR_BASE_STEADY_TIME_H_
#define H5MIRROR_BASE_STEADY_TIME_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror {

// absl::Now() at the first call; from then on it goes forward at the pace of
// SystemClock::Monotonic(), with any time of day. To be compared with its own values.
// For people it is right only as long as the time of day was not set.
//
// absl's waits with a deadline last until a time of day: if that is set back by an hour, they take
// an hour more. A wait that must not do so needs another thread that locks and unlocks the mutex
// now and then, so that the condition is evaluated. The condition compares this time with the
// deadline.
inline absl::Time SteadyNow() {
  static SystemClock clock;
  static const absl::Time origin = absl::Now() - clock.Monotonic();
  return origin + clock.Monotonic();
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_STEADY_TIME_H_
