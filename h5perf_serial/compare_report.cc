#include <algorithm>

#include "h5perf_serial/compare_text.h"
#include "h5perf_serial/report.h"

namespace h5mirror::perf {
namespace {

// The reference for the other drivers: the first one.
const Lane& Reference(const Results& results) {
  return *std::find_if(results.lanes.begin(), results.lanes.end(),
                       [](const Lane& lane) { return lane.hdf5; });
}

}  // namespace

std::string CompareReport(const Options& options, const Results& results) {
  const Lane& reference = Reference(results);
  std::string text = CompareHead(options.iterations, reference.label());
  for (const PhaseName& name : kPhases) {
    if (!Shown(name.phase, options)) continue;
    std::vector<Compared> rows;
    for (const Lane& lane : results.lanes) rows.push_back({lane.label(), lane.times(name.phase)});
    text +=
        CompareBlock(name.title, rows, reference.times(name.phase), options.shape.dataset_bytes());
  }
  return text;
}

}  // namespace h5mirror::perf
