#include "base/setting_values.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace h5mirror {

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

absl::Status CheckLogLevel(std::string_view text) {
  for (const std::string_view level : {"debug", "info", "warn", "error"}) {
    if (text == level) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("must be one of debug, info, warn, error");
}

}  // namespace h5mirror
