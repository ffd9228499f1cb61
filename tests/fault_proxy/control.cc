#include "tests/fault_proxy/control.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>

#include "nlohmann/json.hpp"

namespace h5mirror::fault_proxy {
namespace {

using nlohmann::json;

uint64_t Number(const std::string& text) {
  size_t used = 0;
  const bool starts_well = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const uint64_t number = starts_well ? std::stoull(text, &used) : 0;
  if (used == 0 || used != text.size()) {
    throw std::invalid_argument("'" + text + "' is no number");
  }
  return number;
}

// Tells two words apart: true for the first.
bool IsFirst(const std::string& text, const std::string& first, const std::string& second) {
  if (text != first && text != second) {
    throw std::invalid_argument("'" + text + "' is neither " + first + " nor " + second);
  }
  return text == first;
}

using Verb = std::function<void(Proxy&, const std::string&)>;

const std::map<std::string, Verb>& Verbs() {
  using Mode = Proxy::Mode;
  static const std::map<std::string, Verb> verbs = {
      {"pass", [](Proxy& proxy, const std::string&) { proxy.SetMode(Mode::kPass); }},
      {"hold", [](Proxy& proxy, const std::string&) { proxy.SetMode(Mode::kHold); }},
      {"drop", [](Proxy& proxy, const std::string&) { proxy.SetMode(Mode::kDrop); }},
      {"refuse", [](Proxy& proxy, const std::string&) { proxy.SetMode(Mode::kRefuse); }},
      {"reset", [](Proxy& proxy, const std::string&) { proxy.Reset(); }},
      {"totals", [](Proxy&, const std::string&) {}},
      {"delay",
       [](Proxy& proxy, const std::string& text) {
         proxy.SetDelay(std::chrono::microseconds(Number(text)));
       }},
      {"throttle", [](Proxy& proxy, const std::string& text) { proxy.SetRate(Number(text)); }},
      {"cut-after",
       [](Proxy& proxy, const std::string& text) {
         proxy.SetCutAfter(text == "off" ? std::nullopt : std::optional(Number(text)));
       }},
      {"record", [](Proxy& proxy,
                    const std::string& text) { proxy.SetRecording(IsFirst(text, "on", "off")); }},
      {"half-open",
       [](Proxy& proxy, const std::string& text) {
         proxy.HalfOpen(IsFirst(text, "client", "server") ? Side::kClient : Side::kServer);
       }},
      {"replay", [](Proxy& proxy, const std::string& text) { proxy.Play(Number(text)); }},
  };
  return verbs;
}

}  // namespace

std::string Obey(const std::string& line, Proxy& proxy) {
  const size_t space = line.find(' ');
  const auto verb = Verbs().find(line.substr(0, space));
  if (verb == Verbs().end()) return json{{"error", "no such word: " + line}}.dump();
  try {
    verb->second(proxy, space == std::string::npos ? "" : line.substr(space + 1));
  } catch (const std::exception& error) {
    return json{{"error", line + ": " + error.what()}}.dump();
  }
  return AsJson(proxy);
}

std::string AsJson(const Proxy& proxy) {
  const Totals& totals = proxy.totals();
  json recorded = json::array();
  for (const std::string& recording : proxy.recordings()) recorded.push_back(recording.size());
  return json{{"connections", totals.connections},
              {"connected", proxy.connection_count()},
              {"to_server_bytes", totals.to_server_bytes},
              {"to_client_bytes", totals.to_client_bytes},
              {"turns", totals.turns},
              {"cuts", totals.cuts},
              {"recorded_bytes", recorded}}
      .dump();
}

}  // namespace h5mirror::fault_proxy
