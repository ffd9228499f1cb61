// The driver's output: lines for people on stderr and in log=FILE, and one JSON line for each event
// for `h5mirror exec`, in the directory that H5MIRROR_REPORT names. Never stdout. Thread-safe.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REPORTER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REPORTER_H_

#include <cstdint>
#include <string>

#include "client_vfd/plugin/host/host_library.h"

namespace h5mirror::vfd {

enum class Audience { kLogOnly, kUserToo };

// "h5mirror: TEXT" on stderr for kUserToo, where that still is the file of the first open; a dated
// line in `log_path` unless that is empty.
void Say(const std::string& log_path, Audience audience, const std::string& text);

// One line of H5MIRROR_REPORT/<pid>.jsonl.
struct ReportLine {
  std::string event;
  std::string file;
  std::string name;
  std::string server;
  std::string state;
  int64_t cut = 0;
  int64_t version = 0;
  std::string detail;
};
void Report(const HostLibrary& host, const ReportLine& line);

// The line of a host that has loaded this plugin, once per host and process (also after a fork).
// `event`: "plugin_loaded", or "connector_loaded" of the VOL connector.
void ReportLoaded(const HostLibrary& host, const char* event);

// Reports a file that is written and gets no mirror, once per path and process (also after a fork):
// the event "left_out" with `why` as its detail, and a line in `log_path` unless that is empty.
void ReportLeftOut(const HostLibrary& host, const std::string& log_path,
                   const std::string& real_path, const std::string& why);

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become "\xNN" in its text, so
// that two paths stay two.
std::string JsonString(const std::string& text);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REPORTER_H_
