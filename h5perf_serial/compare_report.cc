#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "h5perf_serial/report.h"

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

// What the others are compared with: the first driver.
const Lane& Reference(const Results& results) {
  return *std::find_if(results.lanes.begin(), results.lanes.end(),
                       [](const Lane& lane) { return lane.hdf5; });
}

size_t LabelWidth(const Results& results) {
  size_t width = 6;
  for (const Lane& lane : results.lanes) width = std::max(width, lane.label().size());
  return width;
}

}  // namespace

std::string CompareReport(const Options& options, const Results& results) {
  const Lane& reference = Reference(results);
  const int width = static_cast<int>(LabelWidth(results));
  const uint64_t bytes = options.shape.dataset_bytes();
  std::string text = StrCat("Times: median [shortest-longest] of ", options.iterations,
                            " iteration(s), drivers in turns. Ratios of times to ",
                            reference.label(), ", iteration by iteration.\n");
  for (const PhaseName& name : kPhases) {
    if (!Shown(name.phase, options)) continue;
    StrAppend(&text, "        ", name.title, ":\n");
    const Samples base = reference.times(name.phase);
    for (const Lane& lane : results.lanes) {
      const Samples times = lane.times(name.phase);
      text += absl::StrFormat("            %-*s  %10.2f MB/s  %-32s  x %s\n", width, lane.label(),
                              RateOf(bytes, MedianOf(times)), TimeText(times),
                              RatioText(RatiosOf(times, base)));
    }
  }
  return text;
}

}  // namespace h5mirror::perf
