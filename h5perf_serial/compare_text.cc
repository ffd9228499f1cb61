#include "h5perf_serial/compare_text.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/strings.h"

namespace h5mirror::perf {
namespace {

// "12.345 ms [12.001-13.204]"
std::string TimeText(const Samples& times) {
  return absl::StrFormat("%.3f ms [%.3f-%.3f]", 1e3 * MedianOf(times), 1e3 * MinOf(times),
                         1e3 * MaxOf(times));
}

std::string RatioText(const Samples& ratios) {
  if (ratios.empty()) return "-";
  return absl::StrFormat("%.2f [%.2f-%.2f]", MedianOf(ratios), MinOf(ratios), MaxOf(ratios));
}

}  // namespace

std::string CompareHead(int iterations, std::string_view reference) {
  return StrCat("Times: median [shortest-longest] of ", iterations,
                " iteration(s), drivers in turns. Ratios of times to ", reference,
                ", iteration by iteration.\n");
}

std::string CompareBlock(std::string_view title, const std::vector<Compared>& rows,
                         const Samples& reference, uint64_t bytes) {
  size_t width = 6;
  for (const Compared& row : rows) width = std::max(width, row.label.size());
  std::string text = StrCat("        ", title, ":\n");
  for (const Compared& row : rows) {
    text += absl::StrFormat("            %-*s  %10.2f MB/s  %-32s  x %s\n", static_cast<int>(width),
                            row.label, RateOf(bytes, MedianOf(row.times)), TimeText(row.times),
                            RatioText(RatiosOf(row.times, reference)));
  }
  return text;
}

}  // namespace h5mirror::perf
