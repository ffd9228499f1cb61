#include "base/human.h"

#include <array>
#include <cstddef>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

std::string Quoted(std::string_view text) {
  return StrCat("'", absl::CHexEscape(ToAbsl(text.substr(0, 64))), "'");
}

absl::Status NotASize(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(StrCat(Quoted(text), " is not a size: ", why,
                                           "; write a whole number of B, KiB, MiB, GiB or TiB, ",
                                           "e.g. 64MiB"));
}

// The power of two that a unit stands for; -1: it is no unit.
int ShiftOf(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  const size_t position = std::string_view("KMGT").find(absl::ascii_toupper(unit[0]));
  if (position == std::string_view::npos) return -1;
  if (unit.size() > 1 && !absl::EqualsIgnoreCase(ToAbsl(unit.substr(1)), "iB")) return -1;
  return static_cast<int>(10 * (position + 1));
}

// "2 min 5 s"; without the second part if that is 0.
std::string TwoParts(int64_t count, std::string_view unit, int64_t rest,
                     std::string_view rest_unit) {
  std::string text = StrCat(count, " ", unit);
  if (rest != 0) StrAppend(&text, " ", rest, " ", rest_unit);
  return text;
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                             "TiB", "PiB", "EiB"};
  if (bytes < 1024) return StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::string number = absl::StrFormat("%.1f", value);
  return StrCat(absl::StripSuffix(number, ".0"), " ", kUnits[unit]);
}

std::string HumanTime(absl::Time time) {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) return "never";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

std::string HumanDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "forever";
  if (duration < absl::ZeroDuration()) return StrCat("-", HumanDuration(-duration));
  if (duration < absl::Milliseconds(1)) {
    return StrCat(absl::ToInt64Microseconds(duration), " us");
  }
  if (duration < absl::Seconds(1)) {
    return StrCat(absl::ToInt64Milliseconds(duration), " ms");
  }
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 60) {
    // Cut, not rounded: 59.96 s must not read as 60.
    const int64_t tenths = absl::ToInt64Milliseconds(duration) / 100;
    return tenths % 10 == 0 ? StrCat(seconds, " s") : StrCat(seconds, ".", tenths % 10, " s");
  }
  if (seconds < 3600) return TwoParts(seconds / 60, "min", seconds % 60, "s");
  if (seconds < 86400) return TwoParts(seconds / 3600, "h", seconds % 3600 / 60, "min");
  return TwoParts(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  const std::string_view trimmed = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  const size_t digits_end = trimmed.find_first_not_of("0123456789");
  const std::string_view digits = trimmed.substr(0, digits_end);
  std::string_view unit;
  if (digits_end != std::string_view::npos) {
    unit = ToStd(absl::StripLeadingAsciiWhitespace(ToAbsl(trimmed.substr(digits_end))));
  }
  uint64_t count = 0;
  if (digits.empty()) return NotASize(text, "it does not begin with a number");
  if (!absl::SimpleAtoi(ToAbsl(digits), &count)) return NotASize(text, "the number is too large");
  const int shift = ShiftOf(unit);
  if (shift < 0) return NotASize(text, StrCat(Quoted(unit), " is no unit"));
  if (count > (std::numeric_limits<uint64_t>::max() >> shift)) {
    return NotASize(text, "it is 2^64 or more");
  }
  return count << shift;
}

absl::StatusOr<absl::Duration> ParseLongDuration(std::string_view text) {
  absl::Duration days;
  std::string_view rest = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  for (const auto& [unit, length] :
       {std::pair('w', absl::Hours(7 * 24)), std::pair('d', absl::Hours(24))}) {
    const size_t end = rest.find_first_not_of("0123456789");
    int32_t count = 0;
    if (end == std::string_view::npos || rest[end] != unit ||
        !absl::SimpleAtoi(ToAbsl(rest.substr(0, end)), &count)) {
      continue;
    }
    days += count * length;
    rest.remove_prefix(end + 1);
    if (rest.empty()) return days;
  }
  const auto time = ParseDuration(rest);
  if (time.ok()) return days + *time;
  return absl::InvalidArgumentError(StrCat(
      Quoted(text), " is not a duration; write a number and w, d, h, m or s, e.g. 30d or 12h"));
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(absl::StripAsciiWhitespace(ToAbsl(text)), &duration) ||
      duration < absl::ZeroDuration() || duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(StrCat(
        Quoted(text), " is not a duration; write a number and ms, s, m or h, e.g. 500ms or 10s"));
  }
  return duration;
}

absl::StatusOr<absl::Duration> ParseTickLen(std::string_view text) {
  uint32_t tenths = 0;
  if (absl::SimpleAtoi(absl::StripAsciiWhitespace(ToAbsl(text)), &tenths)) {
    return tenths * absl::Milliseconds(100);
  }
  return ParseDuration(text);
}

}  // namespace h5mirror
