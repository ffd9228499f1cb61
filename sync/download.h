// Fetches bytes of a version from the server into a sink, memory or a file.
#ifndef H5MIRROR_SYNC_DOWNLOAD_H_
#define H5MIRROR_SYNC_DOWNLOAD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "cli/output/progress.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// Takes the bytes at an offset; offsets rise, and bytes between two pieces are zeros.
using PieceSink = absl::FunctionRef<absl::Status(uint64_t offset, std::string_view data)>;

// Hands all of version `version` (0: the newest) to `sink`, every piece checked against its
// checksum, and returns the version. A stream that breaks is taken up again where it broke.
// Errors: those of ReadVersion; kDataLoss a checksum does not match, or a piece lies outside
//         the version or behind one before.
absl::StatusOr<v1::Version> Download(rpc::Client& client, const std::string& name, int64_t version,
                                     Progress& progress, PieceSink sink);

// The same for the bytes of `range`, which is not empty and within the version.
absl::Status DownloadRange(rpc::Client& client, const std::string& name, int64_t version,
                           Extent range, Progress& progress, PieceSink sink);

// The same into memory.
absl::StatusOr<std::string> DownloadBytes(rpc::Client& client, const std::string& name,
                                          int64_t version, Extent range, Progress& progress);

// The same for many ranges, which rise and are apart. `sink` also gets zeros.
absl::Status DownloadRanges(rpc::Client& client, const std::string& name, int64_t version,
                            absl::Span<const Extent> ranges, Progress& progress, PieceSink sink);

// Fills the empty file `fd` (`path` for messages), with holes where the version has zeros
// that are not sent. Not synced. If the server's files are on this machine and the caller may read
// them, the head's bytes are copied from there (sync/head_copy.h).
absl::StatusOr<v1::Version> DownloadToFile(rpc::Client& client, const std::string& name,
                                           int64_t version, Progress& progress, int fd,
                                           const std::string& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_DOWNLOAD_H_
