// Whole reads and writes at an offset, and where a sparse file holds data.
#ifndef H5MIRROR_CLI_PROCESS_IO_H_
#define H5MIRROR_CLI_PROCESS_IO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/extent.h"
#include "base/owned_fd.h"

namespace h5mirror::tools {

// `path` is for messages. Both go on after short transfers and signals.
absl::Status PwriteAll(int fd, uint64_t offset, std::string_view data, const std::string& path);
// Bytes read; fewer than `size` only at the end of the file.
absl::StatusOr<size_t> PreadUpTo(int fd, uint64_t offset, char* buffer, size_t size,
                                 const std::string& path);

// The next stretch of data in [from, size_bytes); unset: only holes follow. Where the
// filesystem knows no holes it is all the rest.
std::optional<Extent> NextData(int fd, uint64_t from, uint64_t size_bytes);

// The whole of a small file, up to `bytes_max`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max = 1 << 20);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_PROCESS_IO_H_
