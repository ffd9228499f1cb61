// What a report says of the same time in several iterations.
#ifndef H5MIRROR_H5PERF_SERIAL_STATISTICS_H_
#define H5MIRROR_H5PERF_SERIAL_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace h5mirror::perf {

// Seconds, one for each iteration.
using Samples = std::vector<double>;

double MinOf(const Samples& samples);
double MaxOf(const Samples& samples);
double MeanOf(const Samples& samples);
// The smallest sample that `percent` (0 to 100) of all do not exceed: nearest rank.
double PercentileOf(const Samples& samples, double percent);
// The middle one, or the mean of the two in the middle.
double MedianOf(const Samples& samples);

// MB/s, with MB = 2^20; 0 where no time passed, as the original has it.
double RateOf(uint64_t bytes, double seconds);

// mine[i] / theirs[i]: what slowed the machine in one round slowed both. Rounds without time in
// `theirs` are left out.
Samples RatiosOf(const Samples& mine, const Samples& theirs);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_STATISTICS_H_
