#include "cli/context/exit_code.h"

namespace h5mirror::tools {

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return kExitNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnreachable;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return kExitRefused;
    case absl::StatusCode::kDataLoss:
      return kExitDataLoss;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitNoRight;
    default:
      return kExitFailure;
  }
}

std::string_view ExitCodeHelp() {
  return "Exit codes:\n"
         "  0  done\n"
         "  1  failed, in a way that has no code of its own\n"
         "  2  wrong usage: unknown verb or flag, a value that is not allowed\n"
         "  3  no such file, version, tag or directory (or the version was pruned)\n"
         "  4  the server cannot be reached, or did not answer in time\n"
         "  5  refused: the two sides have diverged, a writer holds the lease or the\n"
         "     local file, the output or the tag exists; the message says what decides\n"
         "  6  data loss: a checksum does not match\n"
         "  7  exec --strict: the program ended well, but not all was mirrored\n"
         "  8  no right: no token, an unknown one, or one without the right\n"
         "  9  cluster status: a cell is served by nobody, or a server is lost\n"
         "  diff ends with 0 if the versions are equal, 1 if they differ, and 2 if\n"
         "  that is not known, or after an error that would be 1.\n"
         "  exec otherwise ends as its program does: its code, 128+N after signal N,\n"
         "  126 if it cannot be started, 127 if there is no such program.\n";
}

}  // namespace h5mirror::tools
