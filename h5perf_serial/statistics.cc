#include "h5perf_serial/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "h5perf_serial/sizes.h"

namespace h5mirror::perf {

double MinOf(const Samples& samples) {
  return samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end());
}

double MaxOf(const Samples& samples) {
  return samples.empty() ? 0 : *std::max_element(samples.begin(), samples.end());
}

double MeanOf(const Samples& samples) {
  if (samples.empty()) return 0;
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double PercentileOf(const Samples& samples, double percent) {
  if (samples.empty()) return 0;
  Samples sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

double MedianOf(const Samples& samples) {
  if (samples.empty()) return 0;
  Samples sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double RateOf(uint64_t bytes, double seconds) {
  return seconds == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(kMegabyte) / seconds;
}

Samples RatiosOf(const Samples& mine, const Samples& theirs) {
  Samples ratios;
  for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
    if (theirs[i] > 0) ratios.push_back(mine[i] / theirs[i]);
  }
  return ratios;
}

}  // namespace h5mirror::perf
