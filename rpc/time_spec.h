// A time in the form of the command line and of the driver's configuration.
#ifndef H5MIRROR_RPC_TIME_SPEC_H_
#define H5MIRROR_RPC_TIME_SPEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace h5mirror::rpc {

// A time as the user wrote it: a moment, or a whole day.
struct TimeSpec {
  absl::Time time;          // the moment; of a day, its last nanosecond
  std::string local_text;   // the text, if it takes a zone or a clock to tell the time; else empty
  absl::Time begin = time;  // the moment; of a day, its first
  bool operator==(const TimeSpec&) const = default;
};

// The forms of a time, for messages.
inline constexpr char kTimeForm[] =
    "YYYY-MM-DD, YYYY-MM-DDThh:mm[:ss[.fff]][Z|+hh:mm], yesterday, monday 14:00 or 2h ago";

// One of
//   2026-11-03T14:00   or with a space; also with seconds and fractions of them; then Z, an offset
//                      from UTC, or nothing for a time of `zone`
//   2026-11-03, today, yesterday, monday, last monday
//                      a day of `zone`. A weekday is the newest one before today
//   yesterday 14:00    that time of such a day
//   2h ago, 3 days ago, now
//                      by `now`; a day has 24 hours here
// Words may be joined by '-' and '_' too, and their case does not matter. If a change of the clocks
// repeats the time, the first is taken. kInvalidArgument quotes the text.
absl::StatusOr<TimeSpec> ParseTimeSpec(std::string_view text, absl::TimeZone zone,
                                       absl::Time now = absl::Now());

// The time in UTC, "2026-11-03T13:00:00Z".
std::string UtcText(absl::Time time);
// The meaning of a time with a local_text: "yesterday is 2026-11-02T23:00:00Z to
// 2026-11-03T23:00:00Z".
std::string MeaningOf(const TimeSpec& spec);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TIME_SPEC_H_
