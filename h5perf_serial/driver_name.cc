#include "h5perf_serial/driver_name.h"

#include <stdlib.h>

#include <algorithm>
#include <cctype>

#include "base/strings.h"

namespace h5mirror::perf {
namespace {

// True where "key=" begins at `at`.
bool KeyAt(std::string_view text, size_t at) {
  const size_t start = at;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) {
    ++at;
  }
  return at > start && at < text.size() && text[at] == '=';
}

std::string ConfigOf(std::string_view text) {
  std::string config(text);
  for (size_t i = 0; i < config.size(); ++i) {
    if (config[i] == ',' && KeyAt(config, i + 1)) config[i] = ';';
  }
  return config;
}

// A token given by itself is a secret; "@FILE" is none.
std::string WithoutToken(std::string config) {
  for (size_t at = 0; (at = config.find("token=", at)) != std::string::npos; at += 6) {
    const size_t value = at + 6;
    if (value >= config.size() || config[value] == '@') continue;
    config.replace(value, std::min(config.find(';', value), config.size()) - value, "***");
  }
  return config;
}

}  // namespace

absl::StatusOr<Driver> ParseDriverName(std::string_view text) {
  const size_t colon = text.find(':');
  Driver driver;
  driver.name = driver.label = std::string(text.substr(0, colon));
  if (driver.name.empty()) return absl::InvalidArgumentError("-v wants the name of a file driver");
  if (colon != std::string_view::npos) {
    driver.config = ConfigOf(text.substr(colon + 1));
    driver.label = StrCat(driver.name, ":", WithoutToken(driver.config));
  } else if (driver.name == kMirrorDriver) {
    const char* config = getenv("HDF5_DRIVER_CONFIG");
    if (config != nullptr) driver.config = config;
  }
  return driver;
}

}  // namespace h5mirror::perf
