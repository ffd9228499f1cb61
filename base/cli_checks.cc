#include "base/cli_checks.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/human.h"
#include "base/nearest_name.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kQuotedBytesMax = 100;

// A value may be any text: it is quoted on one line, and cut if it is long.
std::string Quoted(std::string_view text) {
  const bool is_long = text.size() > kQuotedBytesMax;
  return StrCat("'", absl::CHexEscape(ToAbsl(text.substr(0, kQuotedBytesMax))),
                is_long ? "...'" : "'");
}

}  // namespace

CLI::Validator WholeNumber(int64_t min, int64_t max) {
  return CLI::Validator(
      [min, max](std::string& text) -> std::string {
        int64_t number = 0;
        if (absl::SimpleAtoi(text, &number) && number >= min && number <= max) return "";
        const bool is_open = max == std::numeric_limits<int64_t>::max();
        return StrCat(Quoted(text), " is no whole number ",
                      is_open ? StrCat("of ", min, " or more") : StrCat("from ", min, " to ", max));
      },
      "");
}

CLI::Validator AnyNumber(double min, double max) {
  return CLI::Validator(
      [min, max](std::string& text) -> std::string {
        double number = 0;
        if (absl::SimpleAtod(text, &number) && std::isfinite(number) && number >= min &&
            number <= max) {
          return "";
        }
        return StrCat(Quoted(text), " is no number from ", min, " to ", max);
      },
      "");
}

CLI::Validator DurationFrom(absl::Duration min, absl::Duration max) {
  return CLI::Validator(
      [min, max](std::string& text) -> std::string {
        const absl::StatusOr<absl::Duration> duration = ParseDuration(text);
        if (!duration.ok()) return std::string(duration.status().message());
        if (*duration >= min && *duration <= max) return "";
        return StrCat(Quoted(text), " is no duration from ", absl::FormatDuration(min), " to ",
                      absl::FormatDuration(max));
      },
      "");
}

CLI::Validator OneWordOf(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        constexpr size_t kEditsMax = 2;
        const std::vector<std::string_view> views(words.begin(), words.end());
        const std::string_view near = NearestName(text, views, kEditsMax);
        return StrCat(Quoted(text), " is not one of ", absl::StrJoin(words, ", "),
                      near.empty() ? "" : StrCat("; did you mean ", near, "?"));
      },
      "");
}

}  // namespace h5mirror
