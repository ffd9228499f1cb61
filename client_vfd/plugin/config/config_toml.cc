#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/toml.h"
#include "client_vfd/plugin/config/config.h"

namespace h5mirror::vfd {
namespace {

// A TOML value as the config string would spell it; false for tables, dates and lists of other
// things than strings: each key with a list wants patterns or addresses.
bool ToText(const toml::node& node, std::string* out) {
  if (const auto* text = node.as_string()) {
    *out = text->get();
  } else if (const auto* integer = node.as_integer()) {
    *out = std::to_string(integer->get());
  } else if (const auto* real = node.as_floating_point()) {
    *out = std::to_string(real->get());
  } else if (const auto* truth = node.as_boolean()) {
    *out = truth->get() ? "on" : "off";
  } else if (const auto* array = node.as_array()) {
    out->clear();
    for (const toml::node& element : *array) {
      const auto* text = element.as_string();
      if (text == nullptr) return false;
      *out += (out->empty() ? "" : ",") + text->get();
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace

Problem ReadConfigFile(const std::string& path, Missing missing, std::vector<KeyValue>* items) {
  std::ifstream file(path);
  if (!file) {
    const int error = errno;
    if (missing == Missing::kAllowed && (error == ENOENT || error == ENOTDIR || error == EACCES)) {
      return std::nullopt;
    }
    return path + ": " + std::strerror(error);
  }
  std::ostringstream text;
  text << file.rdbuf();
  try {
    const toml::table table = ParseToml(text.str(), path);
    for (const auto& [key, node] : table) {
      std::string value;
      const std::string name(key.str());
      if (!ToText(node, &value))
        return path + ": '" + name + "' must be a string, a number or a list of strings";
      items->emplace_back(name, value);
    }
  } catch (const toml::parse_error& error) {
    return path + ":" + std::to_string(error.source().begin.line) + ": " +
           std::string(error.description());
  }
  return std::nullopt;
}

}  // namespace h5mirror::vfd
