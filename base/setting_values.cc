#include "base/setting_values.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {

std::string SettingFlag(std::string_view key) {
  return "--" + absl::StrReplaceAll(ToAbsl(key), {{"_", "-"}});
}

absl::StatusOr<uint64_t> ParseBytesIn(std::string_view text, uint64_t min, uint64_t max) {
  H5M_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
  if (bytes >= min && bytes <= max) return bytes;
  return absl::InvalidArgumentError(StrCat("must be in ", HumanBytes(min), "..", HumanBytes(max)));
}

absl::StatusOr<absl::Duration> ParseDurationIn(std::string_view text, absl::Duration min,
                                               absl::Duration max) {
  H5M_ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(text));
  if (duration >= min && duration <= max) return duration;
  return absl::InvalidArgumentError(
      StrCat("must be in ", HumanDuration(min), "..", HumanDuration(max)));
}

absl::StatusOr<int> ParseIntIn(std::string_view text, int min, int max) {
  int value = 0;
  if (absl::SimpleAtoi(ToAbsl(text), &value) && value >= min && value <= max) return value;
  return absl::InvalidArgumentError(StrCat("must be a whole number in ", min, "..", max));
}

absl::StatusOr<uint32_t> ParseOctal(std::string_view text, uint32_t max) {
  constexpr size_t kDigitsMax = 5;
  const bool is_octal =
      !text.empty() && text.size() <= kDigitsMax &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
  uint32_t value = 0;
  for (const char digit : text) value = value * 8 + static_cast<uint32_t>(digit - '0');
  if (is_octal && value <= max) return value;
  return absl::InvalidArgumentError(
      absl::StrFormat("must be octal in 0..%04o, in quotes, as in \"0027\"", max));
}

std::string ShowOctal(uint32_t bits) { return absl::StrFormat("%04o", bits); }

absl::StatusOr<std::filesystem::path> ParsePath(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("must not hold a NUL byte");
  }
  if (text.empty()) return std::filesystem::path();
  return std::filesystem::absolute(std::string(text)).lexically_normal();
}

absl::StatusOr<size_t> FindWord(std::string_view text, const std::vector<std::string_view>& words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  std::string list(words[0]);
  const std::string_view between = words.size() == 2 ? " or " : ", ";
  for (size_t i = 1; i < words.size(); ++i) StrAppend(&list, between, words[i]);
  return absl::InvalidArgumentError(StrCat("must be ", words.size() == 2 ? "" : "one of ", list));
}

}  // namespace h5mirror
