// The report for programs: JSON and CSV.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/strings.h"
#include "base/version.h"
#include "h5perf_serial/report.h"
#include "nlohmann/json.hpp"

namespace h5mirror::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercents[] = {50, 90, 99};

Json SettingsToJson(const Options& options, const Results& results) {
  Json settings = Json::object();
  for (const std::string& line : SettingLines(options, results)) {
    const size_t equals = line.find('=');
    settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

Json ParametersToJson(const Options& options, const Results& results) {
  Json order = Json::array();
  for (const size_t dimension : options.shape.order) order.push_back(dimension + 1);
  const Hdf5Settings& settings = options.settings;
  return Json{{"iterations", options.iterations},
              {"dataset", options.shape.dataset},
              {"buffer", options.shape.buffer},
              {"order", order},
              {"chunk", settings.chunk.has_value() ? Json(*settings.chunk) : Json(nullptr)},
              {"extendable", settings.extendable},
              {"page_size_bytes", settings.page_size_bytes},
              {"page_buffer_bytes", settings.page_buffer_bytes},
              {"settings", SettingsToJson(options, results)},
              {"file_bytes", options.shape.dataset_bytes()},
              {"prefix", PrefixText()}};
}

Json PhaseToJson(const Samples& times, uint64_t bytes) {
  Json phase{{"seconds", times},
             {"max_mb_s", RateOf(bytes, MinOf(times))},
             {"average_mb_s", RateOf(bytes, MeanOf(times))},
             {"min_mb_s", RateOf(bytes, MaxOf(times))}};
  for (const double percent : kPercents) {
    phase[absl::StrFormat("p%g_s", percent)] = PercentileOf(times, percent);
  }
  return phase;
}

// Of the lane that the others are compared with.
const Lane* FirstDriver(const Results& results) {
  const auto found = std::find_if(results.lanes.begin(), results.lanes.end(),
                                  [](const Lane& lane) { return lane.hdf5; });
  return found == results.lanes.end() ? nullptr : &*found;
}

Json RatioToJson(const Samples& ratios) {
  return Json{{"median", MedianOf(ratios)}, {"min", MinOf(ratios)}, {"max", MaxOf(ratios)}};
}

Json LaneToJson(const Options& options, const Results& results, const Lane& lane) {
  const Lane* reference = options.compare ? FirstDriver(results) : nullptr;
  Json phases = Json::object();
  for (const PhaseName& name : kPhases) {
    if (!Shown(name.phase, options)) continue;
    const Samples times = lane.times(name.phase);
    Json phase = PhaseToJson(times, options.shape.dataset_bytes());
    if (reference != nullptr) {
      phase["ratio"] = RatioToJson(RatiosOf(times, reference->times(name.phase)));
    }
    phases[name.key] = std::move(phase);
  }
  return Json{{"api", lane.api()},
              {"driver", lane.hdf5 ? Json(lane.driver.label) : Json(nullptr)},
              {"file", lane.file_name},
              {"mirror_complaint", lane.complaint.empty() ? Json(nullptr) : Json(lane.complaint)},
              {"phases", std::move(phases)}};
}

// A field with a comma or a quote in it is quoted.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string JsonReport(const Options& options, const Results& results) {
  Json lanes = Json::array();
  for (const Lane& lane : results.lanes) lanes.push_back(LaneToJson(options, results, lane));
  return Json{{"version", std::string(kVersion)},
              {"hdf5", LibraryVersion()},
              {"parameters", ParametersToJson(options, results)},
              {"results", std::move(lanes)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string CsvReport(const Options& options, const Results& results) {
  const uint64_t bytes = options.shape.dataset_bytes();
  std::string text = "api,driver,iteration,phase,seconds,mb_s\n";
  for (const Lane& lane : results.lanes) {
    const std::string driver = lane.hdf5 ? Field(lane.driver.label) : "";
    for (size_t i = 0; i < lane.iterations.size(); ++i) {
      for (const PhaseName& name : kPhases) {
        if (!Shown(name.phase, options)) continue;
        const double seconds = lane.iterations[i][static_cast<size_t>(name.phase)];
        text += absl::StrFormat("%s,%s,%d,%s,%.9f,%.3f\n", lane.api(), driver, i + 1, name.key,
                                seconds, RateOf(bytes, seconds));
      }
    }
  }
  return text;
}

}  // namespace h5mirror::perf
