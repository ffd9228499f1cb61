// The report for programs.
#include <algorithm>

#include "base/strings.h"
#include "base/version.h"
#include "h5perf/report.h"
#include "nlohmann/json.hpp"

namespace h5mirror::pperf {
namespace {

using Json = nlohmann::ordered_json;
using perf::Samples;

Json ParametersToJson(const Options& options, const Environment& environment) {
  const Workload& work = options.workload;
  Json hints = Json::object();
  for (const auto& [key, value] : environment.hints) hints[key] = value;
  return Json{{"iterations", options.iterations},
              {"files", work.files},
              {"datasets", work.datasets},
              {"bytes_per_process", work.bytes_per_process},
              {"block", work.block},
              {"buffers", options.Buffers()},
              {"processes", options.Processes()},
              {"dimensions", work.two_d ? 2 : 1},
              {"interleaved", work.interleaved},
              {"collective", work.collective},
              {"chunked", work.chunked},
              {"alignment", options.alignment},
              {"threshold", options.threshold},
              {"prefix", environment.prefix},
              {"mpi_info", std::move(hints)}};
}

Json TimerToJson(const Lane& lane, size_t timer) {
  Samples shortest;
  for (const Spread& spread : lane.iterations) shortest.push_back(spread.min[timer]);
  return Json{{"seconds", lane.times(timer)}, {"shortest_seconds", shortest}};
}

Json PhaseToJson(const Lane& lane, const Lane* reference, Phase phase, uint64_t bytes) {
  const Samples times = lane.times(TimerOf(phase));
  Json json = TimerToJson(lane, TimerOf(phase));
  json["max_mb_s"] = perf::RateOf(bytes, perf::MinOf(times));
  json["average_mb_s"] = perf::RateOf(bytes, perf::MeanOf(times));
  json["min_mb_s"] = perf::RateOf(bytes, perf::MaxOf(times));
  if (reference != nullptr) {
    const Samples ratios = perf::RatiosOf(times, reference->times(TimerOf(phase)));
    json["ratio"] = Json{{"median", perf::MedianOf(ratios)},
                         {"min", perf::MinOf(ratios)},
                         {"max", perf::MaxOf(ratios)}};
  }
  return json;
}

Json LaneToJson(const Options& options, const Cell& cell, const Lane& lane, const Lane* reference) {
  const uint64_t bytes = BytesOf(options, cell.processes);
  Json phases = Json::object();
  for (const perf::PhaseName& name : perf::kPhases) {
    if (IsRead(name.phase) && options.write_only) continue;
    phases[name.key] = PhaseToJson(lane, reference, name.phase, bytes);
  }
  phases["write_file_open"] = TimerToJson(lane, TimerOf(kWriteFileOpen));
  phases["write_file_close"] = TimerToJson(lane, TimerOf(kWriteFileClose));
  if (!options.write_only) {
    phases["read_file_open"] = TimerToJson(lane, TimerOf(kReadFileOpen));
    phases["read_file_close"] = TimerToJson(lane, TimerOf(kReadFileClose));
  }
  const bool hdf5 = lane.api == Api::kPhdf5;
  return Json{{"processes", cell.processes},
              {"buffer", cell.buffer},
              {"bytes", bytes},
              {"api", ApiName(lane.api)},
              {"driver", hdf5 ? Json(lane.driver.label) : Json(nullptr)},
              {"mirror_complaint", lane.complaint.empty() ? Json(nullptr) : Json(lane.complaint)},
              {"phases", std::move(phases)}};
}

}  // namespace

std::string JsonReport(const Options& options, const Results& results, const std::string& library) {
  Json lanes = Json::array();
  for (const Cell& cell : results.cells) {
    const auto first = std::find_if(cell.lanes.begin(), cell.lanes.end(),
                                    [](const Lane& lane) { return lane.api == Api::kPhdf5; });
    const Lane* reference = options.compare && first != cell.lanes.end() ? &*first : nullptr;
    for (const Lane& lane : cell.lanes) {
      lanes.push_back(LaneToJson(options, cell, lane, reference));
    }
  }
  return Json{{"version", std::string(kVersion)},
              {"hdf5", library},
              {"parameters", ParametersToJson(options, results.environment)},
              {"results", std::move(lanes)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace h5mirror::pperf
