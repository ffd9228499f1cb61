// A time on the command line.
#ifndef H5MIRROR_TOOLS_TIME_SPEC_H_
#define H5MIRROR_TOOLS_TIME_SPEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/context.h"

namespace h5mirror::tools {

// A time as the user wrote it.
struct TimeSpec {
  absl::Time time;
  std::string local_text;  // the text, where it names no zone; else empty
  bool operator==(const TimeSpec&) const = default;
};

// How a time is written, for messages.
inline constexpr char kTimeForm[] = "YYYY-MM-DDThh:mm[:ss[.fff]][Z|+hh:mm]";

// "2026-11-03T14:00", with seconds and parts of them if wanted; then Z, an offset from UTC, or
// nothing, which is a time of `zone`. Of a time that a change of the clocks repeats, the first
// is meant. kInvalidArgument quotes the text.
absl::StatusOr<TimeSpec> ParseTimeSpec(std::string_view text, absl::TimeZone zone);

// Says on standard error which time in UTC was understood, where the text named no zone.
void NoteLocalTime(Context& context, const TimeSpec& spec);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_TIME_SPEC_H_
