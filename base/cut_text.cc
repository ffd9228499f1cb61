#include "base/cut_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr int64_t kShortFrom = 1'000'000'000;
constexpr int64_t kLastDigits = 1'000'000;  // six
constexpr std::string_view kMark = "..";

}  // namespace

std::string CutText(int64_t cut) {
  if (cut < kShortFrom) return StrCat(cut);
  return absl::StrFormat("..%06d", cut % kLastDigits);
}

absl::StatusOr<int64_t> ParseCut(std::string_view text, int64_t newest) {
  const bool is_short = text.substr(0, kMark.size()) == kMark;
  const std::string_view digits = is_short ? text.substr(kMark.size()) : text;
  const bool is_number = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  int64_t number = 0;
  if (!is_number || !absl::SimpleAtoi(ToAbsl(digits), &number) ||
      (is_short && digits.size() != 6)) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is no cut: a number, or \"..\" and its last six digits"));
  }
  if (!is_short) return number;
  const int64_t cut = newest - newest % kLastDigits + number;
  if (cut <= newest) return cut;
  if (cut >= kLastDigits) return cut - kLastDigits;
  return absl::InvalidArgumentError(
      StrCat("'", text, "' is no cut of the file: its newest is ", newest));
}

}  // namespace h5mirror
