// Fills in the options that a command line leaves open, and refuses those that contradict each
// other.
#ifndef H5MIRROR_H5PERF_SETTLE_H_
#define H5MIRROR_H5PERF_SETTLE_H_

#include "absl/status/status.h"
#include "h5perf/options.h"

namespace h5mirror::pperf {

// Sizes of 0 are those that were left open. `ranks`: processes that MPI started. kInvalidArgument
// says what contradicts what, before anything is measured.
absl::Status Settle(int ranks, Options& options);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_SETTLE_H_
