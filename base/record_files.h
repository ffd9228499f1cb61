// Small files that are written as a whole: those in `X.h5.h5m/` on the client's side, and hints of
// the server.
#ifndef H5MIRROR_BASE_RECORD_FILES_H_
#define H5MIRROR_BASE_RECORD_FILES_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h5mirror {

// errno with what was tried on which file.
absl::Status RecordFileError(std::string_view what, const std::filesystem::path& path);

// All of it; of a longer one a little more than `bytes_max`, so that the caller sees that.
absl::StatusOr<std::string> ReadRecordFile(const std::filesystem::path& path, size_t bytes_max);

// Writes `bytes` into a new file beside `path` and renames it into place, mode 0600; on failure
// nothing of it is left. Not synced. kNotFound: the directory is gone.
absl::Status ReplaceRecordFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_RECORD_FILES_H_
