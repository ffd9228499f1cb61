// `h5mirrord notify test`: sends a test event to every receiver of the [[notify]] tables.
#ifndef H5MIRROR_SERVER_TRY_RECEIVERS_H_
#define H5MIRROR_SERVER_TRY_RECEIVERS_H_

#include "server/flags.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Tries each once, all at the same time, and prints a line for each. Needs no server.
// kOk; kFailed: one did not take it; kUsage: there are none, or a secret file is wrong.
ExitCode TryReceivers(const Config& config);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TRY_RECEIVERS_H_
