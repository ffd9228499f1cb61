// HDF5_MPI_INFO: hints for MPI-IO.
#ifndef H5MIRROR_H5PERF_HINTS_H_
#define H5MIRROR_H5PERF_HINTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::pperf {

using Hints = std::vector<std::pair<std::string, std::string>>;  // each key once

// "key=value;key=value", with blanks and tabs around each ignored. kInvalidArgument quotes an item
// without '=', or one whose key or value is longer than MPI takes.
absl::StatusOr<Hints> ParseHints(std::string_view text, size_t key_max, size_t value_max);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_HINTS_H_
