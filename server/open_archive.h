// Opens the archive of the configuration.
#ifndef H5MIRROR_SERVER_OPEN_ARCHIVE_H_
#define H5MIRROR_SERVER_OPEN_ARCHIVE_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "archive/root_archive.h"
#include "base/env.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// nullptr: there is none. Makes no call of the archive. The root remembers which archive is its
// own, in .h5mirror/archive of `root_env`, which must outlive the archive. A directory for the
// archive is one of this machine, wherever the root is.
// Errors: kFailedPrecondition, kPermissionDenied, kInvalidArgument
//             the credentials, or what the root remembers; the message names the key.
//         those of reading the root.
absl::StatusOr<std::shared_ptr<archive::RootArchive>> OpenArchive(const Config& config,
                                                                  Env& root_env);

// What the root `root` remembers of its archive: 32 hex digits, behind which " new" stands until
// the archive is the root's. Empty: it has none.
absl::StatusOr<std::string> KeptArchive(Env& root_env, const std::filesystem::path& root);
absl::Status KeepArchive(Env& root_env, const std::filesystem::path& root, const std::string& text);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_OPEN_ARCHIVE_H_
