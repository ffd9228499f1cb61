// What lies beside a file that is edited, in X.h5.h5m, as far as it can be told.
#ifndef H5MIRROR_TOOLS_H5EDIT_BESIDE_H_
#define H5MIRROR_TOOLS_H5EDIT_BESIDE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace h5mirror::edit {

// An error where it cannot be told what lies beside `real`: who may not look must not take that for
// nothing, as an edit may be on its way to the file.
absl::Status CheckCanLookBeside(const std::filesystem::path& real);

// Whether the history of `real` was not closed in order: a program writes the file through it, or
// died while it did, and the file may lie between two cuts. After CheckCanLookBeside().
bool HasOpenHistory(const std::filesystem::path& real);

// For who only looks and changes nothing, and so has no use for a file that may lie between two
// cuts. `given` is its name for messages. After CheckCanLookBeside().
absl::Status CheckAtRest(const std::filesystem::path& real, const std::string& given);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_TOOLS_H5EDIT_BESIDE_H_
