#include <hdf5.h>

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "h5perf_serial/parameters_text.h"
#include "h5perf_serial/report.h"

namespace h5mirror::perf {
namespace {

std::string Indent(int columns, const std::string& text) {
  return std::string(static_cast<size_t>(columns), ' ') + text + "\n";
}

// "50th Percentile"; 99.9 keeps its digit.
std::string PercentileName(double percent) { return absl::StrFormat("%gth Percentile", percent); }

class LaneText {
 public:
  explicit LaneText(const Options& options)
      : options_(options), bytes_(options.shape.dataset_bytes()) {}

  std::string Text(const Lane& lane) {
    text_ = Indent(8, StrCat("IO API = ", lane.hdf5 ? "HDF5" : "POSIX"));
    if (options_.debug.level >= 4) text_ += "Timer details:\n";
    if (options_.debug.level >= 1) {
      for (size_t i = 0; i < lane.iterations.size(); ++i) {
        StrAppend(&text_, "data filename=", lane.file_name, "\n");
      }
    }
    for (const PhaseName& name : kPhases) {
      if (Shown(name.phase, options_)) AddPhase(name.title, lane.times(name.phase));
    }
    return std::move(text_);
  }

 private:
  void AddPhase(const std::string& title, const Samples& times) {
    if (options_.debug.level >= 3) AddDetails(title, times);
    text_ += Indent(12, StrCat(title, " (", times.size(), " iteration(s)):"));
    AddRate("Maximum Throughput", MinOf(times));
    AddRate("Average Throughput", MeanOf(times));
    AddRate("Minimum Throughput", MaxOf(times));
    for (const double percent : options_.percentiles) {
      AddRate(PercentileName(percent), PercentileOf(times, percent));
    }
  }

  // One process, so that the shortest and the longest time of an iteration are one.
  void AddDetails(const std::string& title, const Samples& times) {
    text_ += Indent(12, title + " details:");
    for (size_t i = 0; i < times.size(); ++i) {
      text_ += Indent(16, StrCat("Iteration ", i + 1, ":"));
      text_ += Indent(20, absl::StrFormat("Minimum Time: %.2fs", times[i]));
      text_ += Indent(20, absl::StrFormat("Maximum Time: %.2fs", times[i]));
    }
  }

  void AddRate(const std::string& name, double seconds) {
    std::string line = absl::StrFormat("%s: %6.2f MB/s", name, RateOf(bytes_, seconds));
    if (options_.debug.seconds) line += absl::StrFormat(" (%7.3f s)", seconds);
    text_ += Indent(16, line);
  }

  const Options& options_;
  const uint64_t bytes_;
  std::string text_;
};

}  // namespace

std::string LibraryVersion() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return StrCat(major, ".", minor, ".", release);
}

std::string TextReport(const Options& options, const Results& results) {
  std::string text = ParametersText(options, results);
  if (options.compare) return text + CompareReport(options, results);
  for (const Lane& lane : results.lanes) text += LaneText(options).Text(lane);
  return text;
}

}  // namespace h5mirror::perf
