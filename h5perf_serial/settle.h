// Fills in what a command line leaves open, and refuses what does not go together.
#ifndef H5MIRROR_H5PERF_SERIAL_SETTLE_H_
#define H5MIRROR_H5PERF_SERIAL_SETTLE_H_

#include <optional>

#include "absl/status/status.h"
#include "h5perf_serial/options.h"

namespace h5mirror::perf {

// The four lists that have one item a dimension.
struct GivenShape {
  std::optional<Sizes> dataset, buffer, chunk;
  std::optional<Sizes> order;  // dimensions from 1 on
  bool chunked = false;        // also without sizes
};

// All lists given must be of one length, the rank; the others take 100, 200, ... for the dataset
// and 10, 20, ... for buffer and chunk. kInvalidArgument says what contradicts what.
absl::Status Settle(const GivenShape& given, Options& options);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_SETTLE_H_
