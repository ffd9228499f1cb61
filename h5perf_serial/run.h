// Runs all iterations of all lanes, and what comes of it.
#ifndef H5MIRROR_H5PERF_SERIAL_RUN_H_
#define H5MIRROR_H5PERF_SERIAL_RUN_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/process/stop_signal.h"
#include "h5perf_serial/data_file.h"
#include "h5perf_serial/options.h"
#include "h5perf_serial/phase_clock.h"
#include "h5perf_serial/statistics.h"

namespace h5mirror::perf {

// One way to do the work: POSIX, or HDF5 with one of its drivers.
struct Lane {
  bool hdf5 = false;
  Driver driver = {};          // of HDF5
  std::string file_name = {};  // as the program names it
  std::vector<PhaseTimes> iterations = {};
  std::string complaint = {};  // of the mirror, in its last iteration that had one

  const char* api() const { return hdf5 ? "hdf5" : "posix"; }
  std::string label() const { return hdf5 ? driver.label : "posix"; }
  Samples times(Phase phase) const;
};

struct Results {
  std::vector<Lane> lanes;  // posix first
  std::optional<Dropped> dropped;
};

// The phases that a report shows.
bool Shown(Phase phase, const Options& options);

// Each lane does all its iterations before the next begins; to compare, lanes take turns within
// each iteration, the first one rotating, after one that does not count. The first error ends it,
// and is of the lane and iteration that it names; files are removed also then.
//
// `progress`: where a line shows how far long work has come; null: nowhere.
// `stop` ends it between two buffers, with kCancelled; may be null.
// `stays`: a sentence for each mirror that could not be removed from its server, also then.
absl::StatusOr<Results> Run(const Options& options, std::ostream* progress,
                            const tools::StopSignal* stop, std::vector<std::string>* stays);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_RUN_H_
