// Numbers as people read and write them: in logs, in tables, in configuration. (Not called
// Format...: overload resolution would also find absl::FormatTime and FormatDuration.)
#ifndef H5MIRROR_BASE_HUMAN_H_
#define H5MIRROR_BASE_HUMAN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror {

// "512 B", "64 KiB", "1.5 GiB": powers of 1024, at most one decimal.
std::string HumanBytes(uint64_t bytes);

// "2026-11-03 14:00:00 UTC"; "never" for absl::InfinitePast() and InfiniteFuture().
std::string HumanTime(absl::Time time);

// The two largest units: "250 ms", "4.2 s", "2 min 5 s", "3 h 12 min", "4 d 6 h"; "forever"
// for an infinite one. A negative one has a '-' before it.
std::string HumanDuration(absl::Duration duration);

// "65536", "64KiB", "512K", "1 GiB": a whole number and B, K, M, G, T (powers of 1024, "iB"
// may follow). kInvalidArgument quotes the text and shows the form; "64KB" is refused, because half
// of all readers take it for 64000.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// "10s", "500ms", "2m", "1h30m", "1.5s"; "0" needs no unit. Not negative, not infinite.
// kInvalidArgument quotes the text and shows the form.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

// As ParseDuration(), or a whole number of tenths of a second: 4 is 400 ms, as in VFD SWMR's
// configuration.
absl::StatusOr<absl::Duration> ParseTickLen(std::string_view text);

// As ParseDuration(), with days and weeks before: "30d", "2w", "1d12h".
absl::StatusOr<absl::Duration> ParseLongDuration(std::string_view text);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_HUMAN_H_
