// Text to value, one function per kind of key. The problem that each returns does not name the key.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_VALUES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_VALUES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/plugin/config/config.h"

namespace h5mirror::vfd {

Problem SetText(const std::string& value, std::string* out);
// Must be UTF-8, because it is sent to a server.
Problem SetComment(const std::string& value, std::string* out);
// As ParseServerList(); `out` is `value` as it is.
Problem SetServers(const std::string& value, std::string* out);
// Must begin with '/'; a trailing '/' is dropped.
Problem SetAbsolutePath(const std::string& value, std::string* out);
// Comma-separated.
Problem SetList(const std::string& value, std::vector<std::string>* out);
// Bytes, or with KiB, MiB, GiB (K, M, G); [min, max].
Problem SetSize(const std::string& value, uint64_t min, uint64_t max, uint64_t* out);
// "5s", "500ms", "2min" or plain seconds; [min, max] in milliseconds.
Problem SetDurationMs(const std::string& value, uint32_t min, uint32_t max, uint32_t* out);
// A power of two, 512..65536.
Problem SetPageSize(const std::string& value, uint32_t* out);
// "50MB/s", "10MiB/s", bytes for each second, or 0 for no limit; from 1 KiB/s on.
Problem SetBandwidth(const std::string& value, uint64_t* out);
// "degrade", "wait", "wait=30s" (or "wait:30s"), "fail"; sets `wait_ms` if a time is given.
Problem SetOnOutage(const std::string& value, OnOutage* out, uint32_t* wait_ms);
// "auto", "off", or a path that begins with '/'.
Problem SetAgent(const std::string& value, std::string* out);
Problem SetMode(const std::string& value, Mode* out);
Problem SetAck(const std::string& value, Ack* out);

template <typename T>
Problem SetChoice(const std::string& value,
                  std::initializer_list<std::pair<const char*, T>> choices, T* out) {
  std::string list;
  for (const auto& [name, choice] : choices) {
    if (value == name) {
      *out = choice;
      return std::nullopt;
    }
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return "must be one of: " + list;
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_CONFIG_VALUES_H_
