// Sizes and lists of them as h5perf_serial reads and prints them.
#ifndef H5MIRROR_H5PERF_SERIAL_SIZES_H_
#define H5MIRROR_H5PERF_SERIAL_SIZES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::perf {

inline constexpr uint64_t kMegabyte = 1 << 20;

// One size a dimension, the slowest dimension first.
using Sizes = std::vector<uint64_t>;

// "37M" is 37 * 2^20; also K and G, in either case. kInvalidArgument quotes what is no size.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);
// "4K,256"; at least one.
absl::StatusOr<Sizes> ParseSizes(std::string_view text);
// "3"; kInvalidArgument quotes what is no whole number. May be negative.
absl::StatusOr<int64_t> ParseInteger(std::string_view text);
absl::StatusOr<double> ParseNumber(std::string_view text);

// The parts of "a,b,c"; empty ones too.
std::vector<std::string> SplitList(std::string_view text);

// "4KB", "3MB", "2GB" where it is a multiple, otherwise plain: as the original prints them.
std::string SizeText(uint64_t size);
// "4KB 256 ": with a blank after each.
std::string SizesText(const Sizes& sizes);

// 0 for no sizes; the caller has checked that it fits (CheckShape()).
uint64_t Product(const Sizes& sizes);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_SIZES_H_
