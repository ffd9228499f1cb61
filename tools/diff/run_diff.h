// What `h5mirror diff` does.
#ifndef H5MIRROR_TOOLS_DIFF_RUN_DIFF_H_
#define H5MIRROR_TOOLS_DIFF_RUN_DIFF_H_

#include "tools/verb_diff.h"

namespace h5mirror::tools {

// Compares two versions as `options` say and prints what it finds; see DiffRunner.
absl::StatusOr<int> RunDiff(Context& context, const DiffOptions& options);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_DIFF_RUN_DIFF_H_
