// h5mirror log FILE:/PATH and h5mirror blame, in two programs: the CLI knows their flags, and its
// helper, which links HDF5, does it.
#ifndef H5MIRROR_CLI_VERBS_VERB_LOG_H_
#define H5MIRROR_CLI_VERBS_VERB_LOG_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "h5mirror/v1/versions.pb.h"

namespace h5mirror::tools {

struct ObjectLogOptions {
  std::string file;
  std::string path;          // in the file, as PathInFile() makes it
  std::string since, until;  // times, or empty
  int64_t limit = 0;         // of versions that are told; 0: all
};

// Prints, and returns the exit code. Errors: kNotFound no version of that time has the object.
using ObjectLogRunner = std::function<absl::StatusOr<int>(Context&, const ObjectLogOptions&)>;

// A request for versions of `file` from `since` to `until`, as they are written on the command
// line; a local time is said in UTC. kInvalidArgument: one is no time, or they are in wrong order.
absl::StatusOr<v1::ListVersionsRequest> VersionsRequest(Context& context, const std::string& since,
                                                        const std::string& until);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERB_LOG_H_
