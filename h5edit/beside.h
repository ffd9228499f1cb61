// The files beside a file that is edited, in X.h5.h5m, as far as they can be told.
#ifndef H5MIRROR_H5EDIT_BESIDE_H_
#define H5MIRROR_H5EDIT_BESIDE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace h5mirror::edit {

// An error where it cannot be told whether a change is on its way to `real`: a user without the
// right to look must not take that for "no". Takes the right to search X.h5.h5m, which others than
// its owner have.
absl::Status CheckCanAskBeside(const std::filesystem::path& real);

// The same for a program that changes the file, and so must know all that lies there. Takes the
// right to list.
absl::Status CheckCanLookBeside(const std::filesystem::path& real);

// Whether the history of `real` was not closed in order: a program writes the file through it, or
// died while it did, and the file may lie between two cuts. After CheckCanAskBeside().
bool HasOpenHistory(const std::filesystem::path& real);

// For a program that only reads the file, and so has no use for one that may lie between two cuts.
// `given` is its name for messages. After CheckCanAskBeside().
absl::Status CheckAtRest(const std::filesystem::path& real, const std::string& given);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_BESIDE_H_
