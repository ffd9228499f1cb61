// Time for deadlines, which nobody sets.
#ifndef H5MIRROR_BASE_STEADY_TIME_H_
#define H5MIRROR_BASE_STEADY_TIME_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror {

// What absl::Now() would say, had nobody set the time of day since this was first called: it only
// goes forward, at the pace of SystemClock::Monotonic(). To be compared with its own values; shown
// to people it is right but for such jumps.
//
// absl's waits with a deadline are until a time of day: set back by an hour, they take an hour
// more. Who must not wait so long has somebody unlock the mutex in between, so that the condition
// is looked at, and looks at this there.
inline absl::Time SteadyNow() {
  static SystemClock clock;
  static const absl::Time origin = absl::Now() - clock.Monotonic();
  return origin + clock.Monotonic();
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_STEADY_TIME_H_
