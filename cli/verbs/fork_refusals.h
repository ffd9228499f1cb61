// The errors of `fork` and `promote` where forks are not possible.
#ifndef H5MIRROR_CLI_VERBS_FORK_REFUSALS_H_
#define H5MIRROR_CLI_VERBS_FORK_REFUSALS_H_

#include "absl/status/status.h"
#include "base/strings.h"
#include "cli/context/embedded_server.h"
#include "cli/context/file_arg.h"

namespace h5mirror::tools {

// kFailedPrecondition: the file has its history beside it, and no server.
inline absl::Status CheckHasServer(const FileArg& file) {
  if (!IsEmbeddedAddress(file.server)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(file.name, " has its history beside it, and no server, which alone keeps forks; ",
             "h5mirror export makes a file of a version"));
}

// `status`, but kFailedPrecondition with the way out where the server does not know the call.
inline absl::Status OfOlderServer(const absl::Status& status) {
  if (!absl::IsUnimplemented(status)) return status;
  return absl::FailedPreconditionError(
      StrCat(status.message(), "; an older server has no forks: update it"));
}

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_FORK_REFUSALS_H_
