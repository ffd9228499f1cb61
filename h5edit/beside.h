// Checks the files beside an edited file, in X.h5.h5m, before it is used.
#ifndef H5MIRROR_H5EDIT_BESIDE_H_
#define H5MIRROR_H5EDIT_BESIDE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace h5mirror::edit {

// An error if it is unknown whether an edit of `real` is unfinished: a user without the right to
// look must not take that for "no". Needs the right to search X.h5.h5m, which other users than its
// owner have.
absl::Status CheckCanAskBeside(const std::filesystem::path& real);

// The same for a program that changes the file, so it must know all files there. Needs the right to
// list X.h5.h5m.
absl::Status CheckCanLookBeside(const std::filesystem::path& real);

// True: the history of `real` was not closed cleanly. A program writes the file through it, or died
// doing so, and the file may be between two cuts. Call after CheckCanAskBeside().
bool HasOpenHistory(const std::filesystem::path& real);

// For a program that only reads the file: an error if the file may be between two cuts. `given`:
// the file's name for messages. Call after CheckCanAskBeside().
absl::Status CheckAtRest(const std::filesystem::path& real, const std::string& given);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_BESIDE_H_
