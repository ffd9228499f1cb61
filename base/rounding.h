// Offsets and sizes in whole units, such as pages.
#ifndef H5MIRROR_BASE_ROUNDING_H_
#define H5MIRROR_BASE_ROUNDING_H_

#include <cstdint>

namespace h5mirror {

// `unit` is not 0.
constexpr uint64_t RoundDown(uint64_t value, uint64_t unit) { return value - value % unit; }
// The caller bounds `value`: it wraps around within one unit of 2^64.
constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return RoundDown(value + unit - 1, unit);
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_ROUNDING_H_
