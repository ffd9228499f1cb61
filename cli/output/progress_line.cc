#include "cli/output/progress_line.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/human.h"
#include "base/strings.h"
#include "cli/output/text.h"

namespace h5mirror::tools {
namespace {

constexpr int kWidthMin = 20;

std::string Amount(uint64_t amount, const std::string& unit) {
  return unit.empty() ? HumanBytes(amount) : StrCat(amount, " ", unit);
}

}  // namespace

std::string ProgressAmounts(uint64_t done, uint64_t total, const std::string& unit,
                            absl::Duration time) {
  const double rate = static_cast<double>(done) / std::max(absl::ToDoubleSeconds(time), 0.001);
  std::string line = Amount(done, unit);
  if (total > 0) {
    const double part = std::min(static_cast<double>(done) / static_cast<double>(total), 1.0);
    absl::StrAppendFormat(&line, " of %s (%.0f %%)", Amount(total, unit), 100 * part);
  }
  StrAppend(&line, "  ", Amount(static_cast<uint64_t>(rate), unit), "/s");
  if (total > done && rate >= 1) {
    const absl::Duration left = absl::Seconds(static_cast<double>(total - done) / rate);
    StrAppend(&line, "  ", HumanDuration(absl::Ceil(left, absl::Seconds(1))), " left");
  }
  return line;
}

std::string ProgressOnTerminal(std::string_view line, int width_columns) {
  return StrCat("\r", Clip(line, static_cast<size_t>(std::max(width_columns, kWidthMin))),
                "\033[K");
}

}  // namespace h5mirror::tools
