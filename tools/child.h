// Runs another program: to its end with its output caught, or in our place.
#ifndef H5MIRROR_TOOLS_CHILD_H_
#define H5MIRROR_TOOLS_CHILD_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror::tools {

// Name -> value; unset: the variable is removed.
using EnvironmentChanges = std::map<std::string, std::optional<std::string>>;

struct ChildResult {
  int code = 0;     // exit code, or 128 + n after signal n
  std::string out;  // at most 1 MiB of each
  std::string err;
};

// Its standard input is empty. kDeadlineExceeded: it was killed after `timeout`.
// kNotFound: there is no such program.
absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& command,
                                     const EnvironmentChanges& changes, absl::Duration timeout);

// Runs `command` with our input and output and returns its exit code, 128 + n after signal n.
// Signals that somebody sends us go to it; those that the terminal sends it gets by itself.
// Errors: kNotFound no such program; kPermissionDenied and others: it cannot be started.
absl::StatusOr<int> RunInOurPlace(const std::vector<std::string>& command,
                                  const EnvironmentChanges& changes);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_CHILD_H_
