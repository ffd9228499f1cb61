// The options of one run of h5perf.
#ifndef H5MIRROR_H5PERF_OPTIONS_H_
#define H5MIRROR_H5PERF_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "h5perf_serial/driver_name.h"
#include "h5perf_serial/option_words.h"

namespace h5mirror::pperf {

using perf::Debug;
using perf::Driver;

// In the order in which they are measured.
enum class Api { kPosix, kMpiio, kPhdf5 };
inline constexpr int kApiCount = 3;

// "posix", as -A has it.
const char* ApiName(Api api);

// The data that one process moves, and how. All sizes are bytes; in two dimensions they are sides.
struct Workload {
  uint64_t bytes_per_process = 0;  // in each dataset
  uint64_t block = 0;
  bool two_d = false;
  bool interleaved = false;
  bool chunked = false;
  bool collective = false;
  uint64_t datasets = 1;  // in each file
  uint64_t files = 1;
};

struct Options {
  bool help = false;
  bool version = false;
  std::vector<Api> apis;  // in order, each once
  Workload workload;
  uint64_t buffer_min = 0, buffer_max = 0;   // transfer buffers: doubled from one to the other
  int processes_min = 1, processes_max = 0;  // halved from the latter to the former
  uint64_t alignment = 1, threshold = 1;     // of objects in an HDF5 file
  std::vector<Driver> drivers;               // one, or several to compare; "mpio" is HDF5's own
  bool compare = false;
  int iterations = 1;
  bool write_only = false;
  bool json = false;
  Debug debug;
  std::string output;  // empty: standard output

  // The measurements, in order: each count of processes with each size of the transfer buffer.
  std::vector<int> Processes() const;
  std::vector<uint64_t> Buffers() const;
};

// The command line without the program's name, for a run of `ranks` processes. What is left open is
// filled in as the original does. kInvalidArgument names the option, its value and what would do.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments, int ranks);

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_OPTIONS_H_
