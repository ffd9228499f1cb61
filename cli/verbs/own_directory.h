// Directories of this user in places where another user may have made them first. A link there
// could lead what we write to any file of this user.
#ifndef H5MIRROR_CLI_VERBS_OWN_DIRECTORY_H_
#define H5MIRROR_CLI_VERBS_OWN_DIRECTORY_H_

#include <filesystem>

#include "absl/status/status.h"

namespace h5mirror::tools {

// Makes `path`, with mode 0700, unless it is there. Where others may write it, as after a umask of
// 002, that right is taken from them. A link of this user or of root may lead to it.
// kFailedPrecondition: it is of another user, a link of another user, or no directory.
absl::Status MakeOwnDirectory(const std::filesystem::path& path);

// For a directory that existed before. In a directory that everybody may write, another user can
// replace this user's files, unless it is sticky as /tmp is. kFailedPrecondition: `path` is such a
// directory, belongs to a user other than this one or root, or is no directory.
absl::Status CheckKeepsFiles(const std::filesystem::path& path);

// kFailedPrecondition: there is something at `path` that is no plain file of this user, or has
// another name too.
absl::Status CheckOwnFile(const std::filesystem::path& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_OWN_DIRECTORY_H_
