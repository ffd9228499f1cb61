// The work of `h5mirror diff`.
#ifndef H5MIRROR_H5DIFF_RUN_DIFF_H_
#define H5MIRROR_H5DIFF_RUN_DIFF_H_

#include "cli/verbs/verb_diff.h"

namespace h5mirror::tools {

// Compares two versions as `options` say, and prints the findings; see DiffRunner.
absl::StatusOr<int> RunDiff(Context& context, const DiffOptions& options);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_RUN_DIFF_H_
