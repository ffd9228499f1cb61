// Small files of the server in its root. The server works without a hint that is lost.
#ifndef H5MIRROR_SERVER_STATE_ROOT_HINT_H_
#define H5MIRROR_SERVER_STATE_ROOT_HINT_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/env.h"

namespace h5mirror::server {

// The file `name` below `root`; of a longer file its first `bytes_max` bytes.
absl::StatusOr<std::string> ReadRootHint(Env& env, const std::filesystem::path& root,
                                         std::string_view name, size_t bytes_max);

// Writes a new file and renames it into place, unsynced. One caller at a time.
// kNotFound: the directory is gone.
absl::Status ReplaceRootHint(Env& env, const std::filesystem::path& root, std::string_view name,
                             std::string_view bytes);

// As ReplaceRootHint(), for a file that must not be lost: durable when it returns. `name` lies in
// .h5mirror. Errors: kNotFound, and those of the disk.
absl::Status KeepRootFile(Env& env, const std::filesystem::path& root, std::string_view name,
                          std::string_view bytes);
// OK, too, where there is no such file. Durable when it returns.
absl::Status ForgetRootFile(Env& env, const std::filesystem::path& root, std::string_view name);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_ROOT_HINT_H_
