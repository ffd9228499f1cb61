// The log: stderr with times for people, with journal priorities under systemd, or a file.
#ifndef H5MIRROR_SERVER_SETTINGS_LOGGING_H_
#define H5MIRROR_SERVER_SETTINGS_LOGGING_H_

#include "absl/status/status.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Sets spdlog's default logger up. Messages of gRPC become debug lines. An error: log_file cannot
// be written.
absl::Status StartLogging(const Config& config);

// Opens log_file again, after a rotation. Does nothing if the log goes to stderr.
absl::Status ReopenLog(const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_LOGGING_H_
