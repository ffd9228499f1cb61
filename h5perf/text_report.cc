#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "h5perf/report.h"
#include "h5perf_serial/compare_text.h"
#include "h5perf_serial/sizes.h"

namespace h5mirror::pperf {
namespace {

using perf::Samples;

constexpr double kKilobyte = 1024, kMegabyte = perf::kMegabyte;

std::string Indent(int columns, const std::string& text) {
  return std::string(static_cast<size_t>(columns), ' ') + text + "\n";
}

std::string Title(Api api, const Driver& driver) {
  if (api == Api::kPosix) return "POSIX";
  if (api == Api::kMpiio) return "MPIO";
  return StrCat("PHDF5 (w/", driver.name == "mpio" ? "MPI-IO driver" : driver.label, ")");
}

class LaneText {
 public:
  LaneText(const Options& options, const Environment& environment, int processes)
      : options_(options),
        environment_(environment),
        bytes_(BytesOf(options, processes)),
        reads_(!options.write_only) {}

  std::string Text(const Lane& lane) {
    text_ = Indent(8, StrCat("IO API = ", Title(lane.api, lane.driver)));
    AddFiles(lane);
    AddSide(lane, false);
    if (reads_) AddSide(lane, true);
    return std::move(text_);
  }

 private:
  void AddFiles(const Lane& lane) {
    for (size_t i = 0; i < lane.iterations.size(); ++i) {
      if (options_.debug.level >= 4) text_ += "Timer details:\n";
      for (uint64_t file = 1; options_.debug.level >= 1 && file <= options_.workload.files;
           ++file) {
        StrAppend(&text_, "rank 0: data filename=", environment_.FileName(lane.api, file), "\n");
      }
    }
  }

  void AddSide(const Lane& lane, bool read) {
    const std::string side = read ? "Read" : "Write";
    if (options_.debug.raw) {
      AddPhase(lane, StrCat("Raw Data ", side), TimerOf(read ? Phase::kRawRead : Phase::kRawWrite));
    }
    AddPhase(lane, side, TimerOf(read ? Phase::kRead : Phase::kWrite));
    AddPhase(lane, StrCat(side, " Open-Close"),
             TimerOf(read ? Phase::kReadOpenClose : Phase::kWriteOpenClose));
    const size_t open = TimerOf(read ? kReadFileOpen : kWriteFileOpen);
    const size_t close = TimerOf(read ? kReadFileClose : kWriteFileClose);
    if (options_.debug.seconds) {
      AddSeconds(StrCat(side, " File Open"), lane.times(open));
      AddSeconds(StrCat(side, " File Close"), lane.times(close));
    }
    AddDetails(lane, StrCat(side, " file open"), open);
    AddDetails(lane, StrCat(side, " file close"), close);
  }

  void AddPhase(const Lane& lane, const std::string& title, size_t timer) {
    AddDetails(lane, title, timer);
    const Samples times = lane.times(timer);
    text_ += Indent(12, StrCat(title, " (", times.size(), " iteration(s)):"));
    AddRate("Maximum Throughput", perf::MinOf(times));
    AddRate("Average Throughput", perf::MeanOf(times));
    AddRate("Minimum Throughput", perf::MaxOf(times));
  }

  // Of all processes, from -D 3 on.
  void AddDetails(const Lane& lane, const std::string& title, size_t timer) {
    if (options_.debug.level < 3) return;
    text_ += Indent(12, title + " details:");
    for (size_t i = 0; i < lane.iterations.size(); ++i) {
      text_ += Indent(16, StrCat("Iteration ", i + 1, ":"));
      text_ += Indent(20, absl::StrFormat("Minimum Time: %.2fs", lane.iterations[i].min[timer]));
      text_ += Indent(20, absl::StrFormat("Maximum Time: %.2fs", lane.iterations[i].max[timer]));
    }
  }

  void AddRate(const std::string& name, double seconds) {
    std::string line = absl::StrFormat("%s: %6.2f MB/s", name, perf::RateOf(bytes_, seconds));
    if (options_.debug.seconds) line += absl::StrFormat(" (%7.3f s)", seconds);
    text_ += Indent(16, line);
  }

  void AddSeconds(const std::string& title, const Samples& times) {
    text_ += Indent(12, StrCat(title, " (", times.size(), " iteration(s)):"));
    const std::pair<const char*, double> rows[] = {{"Minimum", perf::MinOf(times)},
                                                   {"Average", perf::MeanOf(times)},
                                                   {"Maximum", perf::MaxOf(times)}};
    for (const auto& [name, seconds] : rows) {
      text_ += Indent(16, absl::StrFormat("%s Accumulated Time using %d file(s): %7.5f s", name,
                                          options_.workload.files, seconds));
    }
  }

  const Options& options_;
  const Environment& environment_;
  const uint64_t bytes_;
  const bool reads_;
  std::string text_;
};

std::string CellHead(const Options& options, const Cell& cell) {
  const Workload& work = options.workload;
  const uint64_t side = work.bytes_per_process * static_cast<uint64_t>(cell.processes);
  const auto bytes = static_cast<double>(work.two_d ? side * side : side);
  std::string buffer = StrCat(cell.buffer);
  if (work.two_d) {
    buffer = work.interleaved ? StrCat(cell.buffer, "x", work.block)
                              : StrCat(work.block, "x", cell.buffer);
  }
  std::string text = absl::StrFormat("Transfer Buffer Size: %s bytes, File size: %.2f MB\n", buffer,
                                     static_cast<double>(work.datasets) * bytes / kMegabyte);
  const double kilobytes = static_cast<double>(side) / kKilobyte;
  const std::string size = work.two_d ? absl::StrFormat("%.2fx%.2f KB", kilobytes, kilobytes)
                                      : absl::StrFormat("%.2f MB", bytes / kMegabyte);
  return text + absl::StrFormat("      # of files: %d, # of datasets: %d, dataset size: %s\n",
                                work.files, work.datasets, size);
}

std::string CompareText(const Options& options, const Cell& cell) {
  const auto reference = std::find_if(cell.lanes.begin(), cell.lanes.end(),
                                      [](const Lane& lane) { return lane.api == Api::kPhdf5; });
  std::string text = perf::CompareHead(options.iterations, reference->label());
  for (const perf::PhaseName& name : perf::kPhases) {
    if (IsRead(name.phase) && options.write_only) continue;
    if (IsRaw(name.phase) && !options.debug.raw) continue;
    const size_t timer = TimerOf(name.phase);
    std::vector<perf::Compared> rows;
    for (const Lane& lane : cell.lanes) rows.push_back({lane.label(), lane.times(timer)});
    text += perf::CompareBlock(name.title, rows, reference->times(timer),
                               BytesOf(options, cell.processes));
  }
  return text;
}

}  // namespace

uint64_t BytesOf(const Options& options, int processes) {
  const Workload& work = options.workload;
  const uint64_t side = work.bytes_per_process * static_cast<uint64_t>(processes);
  return (work.two_d ? side * side : side) * work.datasets * work.files;
}

std::string TextReport(const Options& options, const Results& results, const std::string& library,
                       int hint_bytes) {
  std::string text = ParametersText(options, results.environment, library, hint_bytes);
  int processes = 0;
  for (const Cell& cell : results.cells) {
    if (cell.processes != processes) {
      StrAppend(&text, "Number of processors = ", cell.processes, "\n");
    }
    processes = cell.processes;
    text += CellHead(options, cell);
    if (options.compare) {
      text += CompareText(options, cell);
      continue;
    }
    for (const Lane& lane : cell.lanes) {
      text += LaneText(options, results.environment, cell.processes).Text(lane);
    }
  }
  return text;
}

}  // namespace h5mirror::pperf
