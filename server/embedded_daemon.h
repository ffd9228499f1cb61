// h5mirrord --embedded: serves one file with an embedded history. `h5mirror` starts it, and it ends
// with `h5mirror`, so that every verb works on such a file.
#ifndef H5MIRROR_SERVER_EMBEDDED_DAEMON_H_
#define H5MIRROR_SERVER_EMBEDDED_DAEMON_H_

#include <filesystem>

#include "server/flags.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Serves the history beside `head` on the addresses of `config`, until standard input ends. Prints
// one line to standard output once it has started: "ready", or "error CODE MESSAGE" with an
// absl::StatusCode.
ExitCode RunEmbedded(const std::filesystem::path& head, const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_EMBEDDED_DAEMON_H_
