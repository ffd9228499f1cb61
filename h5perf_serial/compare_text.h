// Times of several drivers side by side, as --compare shows them.
#ifndef H5MIRROR_H5PERF_SERIAL_COMPARE_TEXT_H_
#define H5MIRROR_H5PERF_SERIAL_COMPARE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h5perf_serial/statistics.h"

namespace h5mirror::perf {

struct Compared {
  std::string label;
  Samples times;
};

// "Times: median ..." above the blocks.
std::string CompareHead(int iterations, std::string_view reference);
// A block: rate, times, and ratios of times to those of `reference`, which is one of `rows`.
std::string CompareBlock(std::string_view title, const std::vector<Compared>& rows,
                         const Samples& reference, uint64_t bytes);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_COMPARE_TEXT_H_
