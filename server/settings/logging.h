// The log: stderr with times for people, with journal priorities under systemd, or a file.
#ifndef H5MIRROR_SERVER_SETTINGS_LOGGING_H_
#define H5MIRROR_SERVER_SETTINGS_LOGGING_H_

#include "absl/status/status.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Sets spdlog's default logger up; what gRPC complains of becomes debug lines.
// Errors: log_file cannot be written.
absl::Status StartLogging(const Config& config);

// Opens log_file again, after a rotation. Nothing where the log goes to stderr.
absl::Status ReopenLog(const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_LOGGING_H_
