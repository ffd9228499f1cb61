// The connector's settings. HDF5 hands the words behind its name over, as in
// HDF5_VOL_CONNECTOR="h5mirror tick=100ms;drivers=all".
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_SETTINGS_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace h5mirror::vol {

// Plain data: HDF5 copies it, compares it and frees it as bytes.
struct Settings {
  int64_t tick_ns = 0;       // a changed file is flushed after so long; 0: never
  bool all_drivers = false;  // lists that name a driver of their own are mirrored too

  friend bool operator==(const Settings&, const Settings&) = default;
};

// Keys: tick=TIME (10 ms to 24 h, as the driver's keys; "off"), drivers=all|default. An empty text
// gives the defaults. nullopt and a text in `problem` (key, value, allowed values) if it is wrong.
std::optional<Settings> ParseSettings(const std::string& text, std::string* problem);

// As ParseSettings() takes it.
std::string SettingsText(const Settings& settings);

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_SETTINGS_H_
