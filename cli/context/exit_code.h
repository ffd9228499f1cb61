// The exit codes of the program. Scripts depend on these numbers.
#ifndef H5MIRROR_CLI_CONTEXT_EXIT_CODE_H_
#define H5MIRROR_CLI_CONTEXT_EXIT_CODE_H_

#include <string_view>

#include "absl/status/status.h"

namespace h5mirror::tools {

// `h5mirror exec` ends as its program does instead: with its code, with 128 + n after
// signal n, 126 where it cannot be started and 127 where there is none.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,      // anything that has no number of its own
  kExitUsage = 2,        // unknown flag or verb, a value out of range
  kExitNotFound = 3,     // no such file, version, tag or directory, or a pruned version
  kExitUnreachable = 4,  // no answer from the server in time
  kExitRefused = 5,      // diverged, a lease or lock is held, OUT or a tag exists
  kExitDataLoss = 6,     // a checksum does not match
  kExitNotMirrored = 7,  // exec --strict: something was, or may have been, written unmirrored
  kExitNoRight = 8,      // no token, an unknown one, or one without the right
  kExitDegraded = 9,     // cluster status: a cell is served by nobody, or a server is lost
};

ExitCode ExitCodeFor(const absl::Status& status);

// The list for --help and the man page, one code a line.
std::string_view ExitCodeHelp();

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_EXIT_CODE_H_
