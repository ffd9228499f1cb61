// The process around a MirrorServer: root, signals, systemd, exit codes.
#ifndef H5MIRROR_SERVER_DAEMON_H_
#define H5MIRROR_SERVER_DAEMON_H_

#include <filesystem>

#include "server/flags.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Blocks the signals that RunDaemon() waits for. Call it before any thread is started.
void BlockSignals();

// Serves until SIGTERM or SIGINT. Logs each failure in one line. SIGHUP reads the [[access]] and
// [[notify]] tables of `config_file` again, if it is not empty.
ExitCode RunDaemon(const Config& config, const std::filesystem::path& port_file,
                   const std::filesystem::path& config_file);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DAEMON_H_
