#include "h5perf_serial/run.h"

#include <memory>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5perf_serial/job.h"
#include "h5perf_serial/mirror_cleanup.h"
#include "h5perf_serial/progress_line.h"

namespace h5mirror::perf {
namespace {

class Runner {
 public:
  Runner(const Options& options, std::ostream* progress, const tools::StopSignal* stop)
      : options_(options),
        progress_(progress),
        stop_(stop),
        base_(DataFileBase()),
        walk_(options.shape, options.random_order) {}

  absl::StatusOr<Results> Run() {
    MakeLanes();
    const size_t lanes = backends_.size();
    if (options_.compare) {
      for (size_t lane = 0; lane < lanes; ++lane) H5M_RETURN_IF_ERROR(Iterate(lane, 0, false));
      for (int i = 0; i < options_.iterations; ++i) {
        for (size_t turn = 0; turn < lanes; ++turn) {
          H5M_RETURN_IF_ERROR(Iterate((turn + static_cast<size_t>(i)) % lanes, i, true));
        }
      }
    } else {
      for (size_t lane = 0; lane < lanes; ++lane) {
        for (int i = 0; i < options_.iterations; ++i) H5M_RETURN_IF_ERROR(Iterate(lane, i, true));
      }
    }
    return std::move(results_);
  }

  // Removes the files, and returns those that stay on servers.
  std::vector<std::string> CleanUp() { return cleanup_.Run(base_); }

 private:
  void MakeLanes() {
    if (options_.posix) {
      backends_.push_back(MakePosixBackend());
      results_.lanes.emplace_back();
    }
    for (const Driver& driver : options_.drivers) {
      if (!options_.hdf5) break;
      backends_.push_back(MakeHdf5Backend(driver));
      results_.lanes.push_back(Lane{.hdf5 = true, .driver = driver});
    }
    for (size_t i = 0; i < backends_.size(); ++i) {
      results_.lanes[i].file_name = backends_[i]->FileName(base_);
    }
  }

  // One iteration; `counts`: its times are kept.
  absl::Status Iterate(size_t at, int iteration, bool counts) {
    Lane& lane = results_.lanes[at];
    Backend& backend = *backends_[at];
    PhaseClock clock;
    const absl::Status status = WriteAndRead(lane, backend, iteration, clock);
    if (!KeepsFiles()) {
      if (lane.hdf5) cleanup_.Note(lane.driver, base_);
      backend.Remove(base_);
    }
    if (!status.ok()) {
      return absl::Status(status.code(), ToAbsl(StrCat(lane.label(), ", iteration ", iteration + 1,
                                                       ": ", ToStd(status.message()))));
    }
    if (!backend.complaint().empty()) lane.complaint = backend.complaint();
    if (counts) lane.iterations.push_back(clock.times());
    return absl::OkStatus();
  }

  absl::Status WriteAndRead(const Lane& lane, Backend& backend, int iteration, PhaseClock& clock) {
    const std::string label =
        StrCat(lane.label(), ", iteration ", iteration + 1, " of ", options_.iterations);
    H5M_RETURN_IF_ERROR(WithProgress(StrCat(label, ", writing"), clock,
                                     [&](const Job& job) { return backend.Write(job); }));
    if (options_.write_only && !options_.debug.verify) return absl::OkStatus();
    if (options_.drop_caches) results_.dropped = DropCaches(backend.Files(base_));
    return WithProgress(StrCat(label, ", reading"), clock,
                        [&](const Job& job) { return backend.Read(job); });
  }

  template <typename Body>
  absl::Status WithProgress(const std::string& label, PhaseClock& clock, const Body& body) {
    std::function<void(uint64_t)> update;
    std::optional<ProgressLine> line;
    if (progress_ != nullptr) {
      line.emplace(*progress_, label, walk_.count());
      update = [&line](uint64_t done) { line->Update(done); };
    }
    return body(Job{options_, walk_, base_, clock, update, stop_});
  }

  const Options& options_;
  std::ostream* progress_;
  const tools::StopSignal* stop_;
  const std::string base_;
  const Walk walk_;
  std::vector<std::unique_ptr<Backend>> backends_;  // one a lane
  Results results_;
  MirrorCleanup cleanup_;
};

}  // namespace

Samples Lane::times(Phase phase) const {
  Samples samples;
  for (const PhaseTimes& times : iterations) samples.push_back(times[static_cast<size_t>(phase)]);
  return samples;
}

bool Shown(Phase phase, const Options& options) {
  if (IsRead(phase) && options.write_only) return false;
  return !IsRaw(phase) || options.debug.raw || options.format != Format::kText;
}

absl::StatusOr<Results> Run(const Options& options, std::ostream* progress,
                            const tools::StopSignal* stop, std::vector<std::string>* stays) {
  Runner runner(options, progress, stop);
  absl::StatusOr<Results> results = runner.Run();
  *stays = runner.CleanUp();
  return results;
}

}  // namespace h5mirror::perf
