// A time in the form of the command line and of the driver's configuration.
#ifndef H5MIRROR_RPC_TIME_SPEC_H_
#define H5MIRROR_RPC_TIME_SPEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror::rpc {

// A time as the user wrote it.
struct TimeSpec {
  absl::Time time;
  std::string local_text;  // the text, if it names no zone; else empty
  bool operator==(const TimeSpec&) const = default;
};

// The form of a time, for messages.
inline constexpr char kTimeForm[] = "YYYY-MM-DDThh:mm[:ss[.fff]][Z|+hh:mm]";

// "2026-11-03T14:00", also with seconds and fractions of them; then Z, an offset from UTC, or
// nothing for a time of `zone`. If a change of the clocks repeats the time, the first is taken.
// kInvalidArgument quotes the text.
absl::StatusOr<TimeSpec> ParseTimeSpec(std::string_view text, absl::TimeZone zone);

// The time in UTC, "2026-11-03T13:00:00Z".
std::string UtcText(absl::Time time);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_TIME_SPEC_H_
