// The work of `h5mirror log FILE:/PATH` and `h5mirror blame`.
#ifndef H5MIRROR_H5DIFF_RUN_LOG_H_
#define H5MIRROR_H5DIFF_RUN_LOG_H_

#include "absl/status/statusor.h"
#include "cli/verbs/verb_log.h"

namespace h5mirror::tools {

// Prints the versions in which the object changed; see ObjectLogRunner.
absl::StatusOr<int> RunObjectLog(Context& context, const ObjectLogOptions& options);

// Prints the object's attributes, each with the version that gave it its value. Only `file` and
// `path` count. kNotFound: the newest version does not have the object.
absl::StatusOr<int> RunBlame(Context& context, const ObjectLogOptions& options);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_RUN_LOG_H_
