// `h5mirrord access check`: the rights by the [[access]] tables and the tokens, without a server.
#ifndef H5MIRROR_SERVER_ACCESS_CHECK_H_
#define H5MIRROR_SERVER_ACCESS_CHECK_H_

#include "server/flags.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Prints the rights of question.user to question.file, and the table that decides. A name without
// an issuer may be of a user of this host and of a token: then each is shown.
// kOk; kFailed: question.right is missing, for each of them; kUsage: no such user, file or right.
ExitCode CheckAccess(const Config& config, const AccessQuestion& question);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_ACCESS_CHECK_H_
