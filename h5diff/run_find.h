// The work of `h5mirror find`.
#ifndef H5MIRROR_H5DIFF_RUN_FIND_H_
#define H5MIRROR_H5DIFF_RUN_FIND_H_

#include "cli/verbs/verb_find.h"

namespace h5mirror::tools {

// Prints the matches, file by file; see FindRunner. A file that cannot be looked into is named,
// and the others follow.
absl::StatusOr<int> RunFind(Context& context, const FindOptions& options);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_RUN_FIND_H_
