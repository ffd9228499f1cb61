// The measurements of a run.
#ifndef H5MIRROR_H5PERF_RESULTS_H_
#define H5MIRROR_H5PERF_RESULTS_H_

#include <string>
#include <vector>

#include "h5perf/hints.h"
#include "h5perf/options.h"
#include "h5perf/timers.h"
#include "h5perf_serial/statistics.h"

namespace h5mirror::pperf {

// One API, and of HDF5 one driver.
struct Lane {
  Api api = Api::kPosix;
  Driver driver = {};  // of HDF5
  std::vector<Spread> iterations = {};
  std::string complaint = {};  // of the mirror, in its last iteration that had one

  std::string label() const { return api == Api::kPhdf5 ? driver.label : ApiName(api); }
  // Of each iteration the longest of all processes: that is when all are done.
  perf::Samples times(size_t timer) const {
    perf::Samples samples;
    for (const Spread& spread : iterations) samples.push_back(spread.max[timer]);
    return samples;
  }
};

// One count of processes with one transfer buffer.
struct Cell {
  int processes = 0;
  uint64_t buffer = 0;
  std::vector<Lane> lanes = {};
};

// The environment of the first process, which all use.
struct Environment {
  std::string prefix;        // HDF5_PARAPREFIX, or "not set"
  std::string base;          // of data files; a number and a suffix follow
  bool keeps_files = false;  // HDF5_NOCLEANUP
  Hints hints;               // HDF5_MPI_INFO
  bool has_hints = false;    // it is set, though it may be empty

  // Of data file `number`, from 1 on.
  std::string FileName(Api api, uint64_t number) const;
};

struct Results {
  Environment environment;
  std::vector<Cell> cells;
};

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_RESULTS_H_
