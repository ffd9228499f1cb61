// h5mirrord --embedded: a server for one file without a server, started by `h5mirror` and gone with
// it, so that every verb works on such a file as on any.
#ifndef H5MIRROR_SERVER_EMBEDDED_DAEMON_H_
#define H5MIRROR_SERVER_EMBEDDED_DAEMON_H_

#include <filesystem>

#include "server/flags.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Serves the history beside `head` where `config` listens, until standard input ends. Tells its
// parent on standard output how the start went, in one line: "ready", or "error CODE MESSAGE" with
// an absl::StatusCode.
ExitCode RunEmbedded(const std::filesystem::path& head, const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_EMBEDDED_DAEMON_H_
