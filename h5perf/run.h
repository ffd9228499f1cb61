// Measures all that was asked for.
#ifndef H5MIRROR_H5PERF_RUN_H_
#define H5MIRROR_H5PERF_RUN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "h5perf/backend.h"
#include "h5perf/failure.h"
#include "h5perf/group.h"
#include "h5perf/options.h"
#include "h5perf/results.h"
#include "h5perf_serial/page_buffer.h"

namespace h5mirror::pperf {

// One run, by all processes of `world`. Lanes do all their iterations one after the other; to
// compare, they take turns within each iteration, the first one rotating, after one that does not
// count.
class Runner {
 public:
  // All must outlive it.
  Runner(const Options& options, const Environment& environment, const Group& world,
         DataFiles& files);

  // The results are whole in the first process only. The first error of this process ends it, and
  // says in which API and iteration; others may then wait for this one (EndRun()).
  absl::StatusOr<Results> Run();
  // After an error: something is open whose close would wait for others.
  bool is_open() const { return backend_ != nullptr && backend_->is_open(); }

 private:
  absl::Status MeasureCell(const Group& group, uint64_t buffer);
  absl::Status Iterate(const Group& group, Cell& cell, size_t lane, int iteration, bool counts);
  absl::Status MoveFile(const Group& group, const Pattern& pattern, const std::string& file,
                        bool read, Timers& timers);
  absl::Status MoveDataset(const Pattern& pattern, const std::string& file, bool read,
                           unsigned char filled, Timers& timers);

  const Options& options_;
  const Environment& environment_;
  const Group& world_;
  DataFiles& files_;
  std::unique_ptr<Backend> backend_;  // of the lane that is measured
  std::vector<unsigned char, perf::PageAllocator<unsigned char>> buffer_;
  Results results_;
};

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_RUN_H_
