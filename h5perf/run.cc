#include "h5perf/run.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::pperf {
namespace {

std::unique_ptr<Backend> MakeBackend(const Group& group, const Options& options, const Lane& lane) {
  switch (lane.api) {
    case Api::kPosix:
      return MakePosixBackend(group, options);
    case Api::kMpiio:
      return MakeMpiioBackend(group, options);
    case Api::kPhdf5:
      break;
  }
  return MakeHdf5Backend(group, options, lane.driver);
}

std::vector<Lane> MakeLanes(const Options& options) {
  std::vector<Lane> lanes;
  for (const Api api : options.apis) {
    if (api != Api::kPhdf5) {
      lanes.push_back(Lane{.api = api});
      continue;
    }
    for (const Driver& driver : options.drivers) {
      lanes.push_back(Lane{.api = api, .driver = driver});
    }
  }
  return lanes;
}

}  // namespace

Runner::Runner(const Options& options, const Environment& environment, const Group& world,
               DataFiles& files)
    : options_(options), environment_(environment), world_(world), files_(files) {}

absl::StatusOr<Results> Runner::Run() {
  results_.environment = environment_;
  for (const int processes : options_.Processes()) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(world_.comm, world_.rank < processes ? 0 : MPI_UNDEFINED, world_.rank, &comm);
    if (comm == MPI_COMM_NULL) continue;  // It waits in the next split, or at the end.
    const Group group = Group::Of(comm, world_.info);
    for (const uint64_t buffer : options_.Buffers()) {
      H5M_RETURN_IF_ERROR(MeasureCell(group, buffer));
    }
    MPI_Comm_free(&comm);
  }
  world_.Wait();
  return std::move(results_);
}

absl::Status Runner::MeasureCell(const Group& group, uint64_t buffer) {
  Cell& cell = results_.cells.emplace_back(Cell{group.processes, buffer, MakeLanes(options_)});
  const size_t lanes = cell.lanes.size();
  const Pattern pattern(options_.workload, buffer, group.processes, group.rank);
  buffer_.resize(pattern.transfer_bytes());
  if (options_.compare) {
    for (size_t lane = 0; lane < lanes; ++lane) {
      H5M_RETURN_IF_ERROR(Iterate(group, cell, lane, 0, false));
    }
    for (int i = 0; i < options_.iterations; ++i) {
      for (size_t turn = 0; turn < lanes; ++turn) {
        const size_t lane = (turn + static_cast<size_t>(i)) % lanes;
        H5M_RETURN_IF_ERROR(Iterate(group, cell, lane, i, true));
      }
    }
    return absl::OkStatus();
  }
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < options_.iterations; ++i) {
      H5M_RETURN_IF_ERROR(Iterate(group, cell, lane, i, true));
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::Iterate(const Group& group, Cell& cell, size_t at, int iteration,
                             bool counts) {
  Lane& lane = cell.lanes[at];
  const Pattern pattern(options_.workload, cell.buffer, group.processes, group.rank);
  Timers timers;
  const auto explain = [&](const absl::Status& status) {
    return absl::Status(status.code(), ToAbsl(StrCat(lane.label(), ", iteration ", iteration + 1,
                                                     ": ", ToStd(status.message()))));
  };
  backend_ = MakeBackend(group, options_, lane);
  for (uint64_t number = 1; number <= options_.workload.files; ++number) {
    const std::string file = environment_.FileName(lane.api, number);
    if (!environment_.keeps_files) files_.Add(file);
    absl::Status status = MoveFile(group, pattern, file, false, timers);
    if (status.ok() && (!options_.write_only || options_.debug.verify)) {
      status = MoveFile(group, pattern, file, true, timers);
    }
    if (!status.ok()) return explain(status);
    group.Wait();  // All have closed it.
    if (group.first()) {
      if (std::string why = backend_->Complaint(file); !why.empty())
        lane.complaint = std::move(why);
      if (!environment_.keeps_files) backend_->Remove(file);
    }
  }
  backend_.reset();
  const Spread spread = group.SpreadOf(timers.times());
  if (counts) lane.iterations.push_back(spread);
  return absl::OkStatus();
}

absl::Status Runner::MoveFile(const Group& group, const Pattern& pattern, const std::string& file,
                              bool read, Timers& timers) {
  const auto filled = static_cast<unsigned char>(group.rank + 1);
  // Each byte of a file tells which process wrote it. A read buffer starts with other bytes, so
  // that missing data shows.
  std::fill(buffer_.begin(), buffer_.end(), read ? static_cast<unsigned char>(~filled) : filled);
  group.Wait();  // They start together.
  timers.BeginFile(read);
  H5M_RETURN_IF_ERROR(backend_->Open(file, !read));
  timers.Opened(read);
  H5M_RETURN_IF_ERROR(backend_->Prepare(pattern));
  for (uint64_t dataset = 0; dataset < options_.workload.datasets; ++dataset) {
    H5M_RETURN_IF_ERROR(backend_->BeginDataset(dataset));
    timers.BeginRaw(read);
    H5M_RETURN_IF_ERROR(MoveDataset(pattern, file, read, filled, timers));
    timers.EndRaw(read);
    H5M_RETURN_IF_ERROR(backend_->EndDataset());
  }
  timers.BeginClose(read);
  H5M_RETURN_IF_ERROR(backend_->Close());
  timers.EndFile(read);
  return absl::OkStatus();
}

absl::Status Runner::MoveDataset(const Pattern& pattern, const std::string& file, bool read,
                                 unsigned char filled, Timers& timers) {
  const uint64_t count = pattern.count();
  for (uint64_t number = 0; number < count; ++number) {
    if (!read) {
      H5M_RETURN_IF_ERROR(backend_->Write(number, buffer_.data()));
      continue;
    }
    H5M_RETURN_IF_ERROR(backend_->Read(number, buffer_.data()));
    if (!options_.debug.verify) continue;
    const auto since = Timers::Now();
    const auto wrong = std::find_if(buffer_.begin(), buffer_.end(),
                                    [filled](unsigned char byte) { return byte != filled; });
    if (wrong != buffer_.end()) {
      return absl::DataLossError(ToAbsl(StrCat(
          file, ": byte ", wrong - buffer_.begin(), " of transfer ", number + 1, " was read as ",
          static_cast<unsigned>(*wrong), ", and written as ", static_cast<unsigned>(filled))));
    }
    // The next transfer must bring its own.
    std::fill(buffer_.begin(), buffer_.end(), static_cast<unsigned char>(~filled));
    timers.Exclude(since);
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::pperf
