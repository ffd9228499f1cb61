// Time for deadlines: nobody can set it.
#ifndef H5MIRROR_BASE_STEADY_TIME_H_
#define H5MIRROR_BASE_STEADY_TIME_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror {

// absl::Now() at the first call. From then on it advances at the pace of SystemClock::Monotonic(),
// whatever happens to the time of day. Compare it only with its own values. It is right for people
// only as long as nobody has set the time of day.
//
// absl's waits with a deadline last until a time of day: if that is set back by an hour, they take
// an hour longer. A wait that must end in time needs another thread: it locks and unlocks the mutex
// now and then, so that the condition is evaluated. The condition compares this time with the
// deadline.
inline absl::Time SteadyNow() {
  static SystemClock clock;
  static const absl::Time origin = absl::Now() - clock.Monotonic();
  return origin + clock.Monotonic();
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_STEADY_TIME_H_
