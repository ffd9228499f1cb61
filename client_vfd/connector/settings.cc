#include "client_vfd/connector/settings.h"

#include <vector>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/config/config_values.h"

namespace h5mirror::vol {
namespace {

constexpr uint32_t kTickMinMs = 10;
constexpr uint32_t kTickMaxMs = 24 * 3600 * 1000;
constexpr int64_t kMs = 1'000'000;

vfd::Problem SetTick(const std::string& value, Settings* settings) {
  if (value == "off") {
    settings->tick_ns = 0;
    return std::nullopt;
  }
  uint32_t ms = 0;
  vfd::Problem problem = vfd::SetDurationMs(value, kTickMinMs, kTickMaxMs, &ms);
  if (!problem) settings->tick_ns = ms * kMs;
  return problem;
}

vfd::Problem Set(const std::string& key, const std::string& value, Settings* settings) {
  if (key == "tick") return SetTick(value, settings);
  if (key == "drivers") {
    return vfd::SetChoice<bool>(value, {{"all", true}, {"default", false}}, &settings->all_drivers);
  }
  return "unknown key; known are: tick, drivers";
}

}  // namespace

std::optional<Settings> ParseSettings(const std::string& text, std::string* problem) {
  Settings settings;
  std::vector<vfd::KeyValue> items;
  vfd::Problem wrong = vfd::SplitConfigString(text, &items);
  for (const vfd::KeyValue& item : items) {
    if (wrong) break;
    wrong = Set(item.first, item.second, &settings);
    if (wrong) wrong = item.first + "=" + item.second + ": " + *wrong;
  }
  if (wrong) {
    *problem = *wrong;
    return std::nullopt;
  }
  return settings;
}

std::string SettingsText(const Settings& settings) {
  std::string text;
  if (settings.tick_ns != 0) text = "tick=" + std::to_string(settings.tick_ns / kMs) + "ms";
  if (settings.all_drivers) text += std::string(text.empty() ? "" : ";") + "drivers=all";
  return text;
}

}  // namespace h5mirror::vol
