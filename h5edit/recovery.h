// Recovers files in which an edit was interrupted.
#ifndef H5MIRROR_H5EDIT_RECOVERY_H_
#define H5MIRROR_H5EDIT_RECOVERY_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "h5edit/options.h"

namespace h5mirror::edit {

// Finishes, or takes back, a cut that a crash left half-way in the file at `real`. Changes nothing
// if there is none.
absl::Status SettleFile(const std::filesystem::path& real);

// `h5edit --recover`; `said` gets the findings and the steps.
absl::Status Recover(const Options& options, std::string* said);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_RECOVERY_H_
