// Small files that are written as a whole: the files in `X.h5.h5m/` on the client's side, and hints
// of the server.
#ifndef H5MIRROR_BASE_RECORD_FILES_H_
#define H5MIRROR_BASE_RECORD_FILES_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/owned_fd.h"

namespace h5mirror {

// The status of errno, with the call and the file.
absl::Status RecordFileError(std::string_view what, const std::filesystem::path& path);

// The whole file. Of a file longer than `bytes_max` a little more than `bytes_max`, so that the
// caller notices. Fails if the file is a symbolic link, or if its directory is one that
// OpenDirectoryOf() refuses.
absl::StatusOr<std::string> ReadRecordFile(const std::filesystem::path& path, size_t bytes_max);

// The directory of the file `path`, for openat() and its like. On failure the result is not open,
// and errno tells why. ELOOP: the directory is a symbolic link that another user has put there, or
// leads to one. That user could redirect our writes anywhere. The kernel follows such links, even
// if fs.protected_symlinks is set. This function follows links of this user and of root.
OwnedFd OpenDirectoryOf(const std::filesystem::path& path);

// With kNone a power loss may leave an older file, or none.
enum class RecordSync { kNone, kSynced };

// Writes `bytes` into a new file beside `path` and renames it into place. Mode 0600. On failure the
// new file is removed. kNotFound: the directory is gone.
absl::Status ReplaceRecordFile(const std::filesystem::path& path, std::string_view bytes,
                               RecordSync sync = RecordSync::kNone);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_RECORD_FILES_H_
