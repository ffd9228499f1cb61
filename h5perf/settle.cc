#include "h5perf/settle.h"

#include <algorithm>
#include <limits>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::pperf {
namespace {

constexpr uint64_t kBytes1d = 256 << 10, kSide2d = 8 << 10;  // of -e
// MPI counts what one call moves in an int.
constexpr uint64_t kTransferMax = std::numeric_limits<int>::max();

// The original's defaults and limits.
void FillIn(Options& options) {
  Workload& work = options.workload;
  if (work.bytes_per_process == 0) work.bytes_per_process = work.two_d ? kSide2d : kBytes1d;
  const uint64_t bytes = work.bytes_per_process;
  if (options.buffer_max == 0) options.buffer_max = bytes;
  if (options.buffer_min == 0) options.buffer_min = bytes / 2;
  if (work.block == 0) work.block = bytes / 2;
  if (!work.two_d) {
    options.buffer_min = std::min(options.buffer_min, bytes);
    options.buffer_max = std::min(options.buffer_max, bytes);
  }
  options.buffer_min = std::min(options.buffer_min, options.buffer_max);
  work.block = std::min(work.block, bytes);
  options.processes_min = std::min(options.processes_min, options.processes_max);
  if (options.apis.empty()) options.apis = {Api::kPosix, Api::kMpiio, Api::kPhdf5};
  if (options.drivers.empty()) options.drivers.push_back(Driver{"mpio", "", "mpio"});
}

absl::Status CheckBuffer(const Workload& work, uint64_t buffer) {
  if (buffer == 0 || work.block == 0) {
    return absl::InvalidArgumentError(StrCat("-e ", work.bytes_per_process,
                                             " leaves nothing for a block of half of it; give at "
                                             "least 2, or -B, -x and -X"));
  }
  if (buffer % work.block != 0) {
    return absl::InvalidArgumentError(StrCat("a transfer buffer of ", buffer,
                                             " (-x to -X) must be a multiple of the block (-B ",
                                             work.block, ")"));
  }
  const uint64_t bytes = work.two_d ? work.block : 1;
  if (buffer > kTransferMax / bytes) {
    return absl::InvalidArgumentError(StrCat("a transfer buffer of ", buffer,
                                             work.two_d ? StrCat(" x ", work.block) : "",
                                             " bytes is more than one call of MPI moves; give at "
                                             "most 2G - 1 bytes by -X"));
  }
  return absl::OkStatus();
}

// In one dimension a process moves its own share by whole buffers; in two dimensions buffers lie
// side by side along the dataset, and blocks along what is one process's.
absl::Status CheckShare(const Workload& work, uint64_t buffer, uint64_t processes) {
  const uint64_t bytes = work.bytes_per_process;
  const uint64_t whole = work.two_d ? bytes * processes : bytes;
  if (whole % buffer != 0) {
    return absl::InvalidArgumentError(
        StrCat(work.two_d ? StrCat("the dataset's side with ", processes, " process(es) (")
                          : "the bytes of a process (-e ",
               whole, ") must be a multiple of the transfer buffer (", buffer,
               "); give -x and -X that fit"));
  }
  if (bytes % work.block != 0) {
    return absl::InvalidArgumentError(StrCat("the bytes of a process (-e ", bytes,
                                             ") must be a multiple of the block (-B ", work.block,
                                             ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckTotal(const Workload& work, uint64_t processes) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  const auto times = [](uint64_t one, uint64_t other) {
    return other != 0 && one > kMax / other ? kMax : one * other;
  };
  const uint64_t side = times(work.bytes_per_process, processes);
  const uint64_t dataset = work.two_d ? times(side, side) : side;
  if (times(times(dataset, work.datasets), work.files) == kMax) {
    return absl::InvalidArgumentError("-e, -d and -F ask for 2^63 bytes or more; give less");
  }
  return absl::OkStatus();
}

absl::Status CheckDrivers(const Options& options) {
  const bool hdf5 =
      std::find(options.apis.begin(), options.apis.end(), Api::kPhdf5) != options.apis.end();
  if (options.drivers.size() > 1 && !options.compare) {
    return absl::InvalidArgumentError(
        "-v is given more than once: --compare sets drivers side by side");
  }
  if (options.compare && options.drivers.size() < 2) {
    return absl::InvalidArgumentError(
        "--compare wants two drivers or more: -v mpio -v h5mirror:server=...");
  }
  if (options.compare && !hdf5) {
    return absl::InvalidArgumentError("--compare compares drivers of HDF5; name phdf5 in -A");
  }
  for (const Driver& driver : options.drivers) {
    if (driver.name == "mpio" && !driver.config.empty()) {
      return absl::InvalidArgumentError(StrCat("driver mpio takes no configuration, not ",
                                               driver.label, "; hints go by HDF5_MPI_INFO"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Settle(int ranks, Options& options) {
  FillIn(options);
  H5M_RETURN_IF_ERROR(CheckTotal(options.workload, static_cast<uint64_t>(ranks)));
  if (options.alignment == 0) {
    return absl::InvalidArgumentError("-a is 0; objects are aligned to at least 1 byte");
  }
  H5M_RETURN_IF_ERROR(CheckDrivers(options));
  // A sweep that could not end.
  if (options.buffer_min == 0) return CheckBuffer(options.workload, 0);
  for (const uint64_t buffer : options.Buffers()) {
    H5M_RETURN_IF_ERROR(CheckBuffer(options.workload, buffer));
    for (const int processes : options.Processes()) {
      H5M_RETURN_IF_ERROR(CheckShare(options.workload, buffer, static_cast<uint64_t>(processes)));
    }
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::pperf
