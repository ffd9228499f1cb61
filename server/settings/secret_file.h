// Small files that only their owner may read: keys, tokens.
#ifndef H5MIRROR_SERVER_SETTINGS_SECRET_FILE_H_
#define H5MIRROR_SERVER_SETTINGS_SECRET_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h5mirror::server {

// The whole file, at most 1 MiB. kNotFound, kPermissionDenied name the path.
absl::StatusOr<std::string> ReadSmallFile(const std::filesystem::path& path);

// As ReadSmallFile(). Only root and this process's user may be able to write the file, because its
// content decides about callers. kPermissionDenied names the path and the way out;
// kInvalidArgument: no file.
absl::StatusOr<std::string> ReadGuardedFile(const std::filesystem::path& path);
// The same of a key: the file must be a regular one that no other user can read or write, of this
// process's user or of root. Line ends at its end are cut off. kPermissionDenied names the way out.
absl::StatusOr<std::string> ReadSecretFile(const std::filesystem::path& path);

// Makes a file that must not exist yet. kAlreadyExists names it.
absl::Status CreateFile(const std::filesystem::path& path, std::string_view content,
                        unsigned mode_bits);

// Writes a file beside `path`, syncs it and renames it into place. Mode 0600; the owner of an
// existing file stays.
absl::Status ReplaceSecretFile(const std::filesystem::path& path, std::string_view content);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_SECRET_FILE_H_
