// Is a local file the same as the server's newest version?
#ifndef H5MIRROR_TOOLS_COMPARE_H_
#define H5MIRROR_TOOLS_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/client.h"
#include "tools/local_file.h"
#include "tools/progress.h"

namespace h5mirror::tools {

struct Difference {
  // Start of the first block that differs, or of what only one side has.
  uint64_t offset = 0;
  uint64_t block_size_bytes = 0;
  uint64_t local_size_bytes = 0;
  uint64_t server_size_bytes = 0;
};

struct Comparison {
  v1::Version version;                   // what the local file was compared with
  std::optional<Difference> difference;  // unset: equal, byte for byte
};

// Compares by XXH3-128 of 1 MiB blocks: only digests cross the network.
// Errors: those of DigestFile; kAborted the local file changed meanwhile; kDataLoss digests
//         that do not fit the version's size.
absl::StatusOr<Comparison> CompareWithNewest(rpc::Client& client, const std::string& name,
                                             const LocalFile& file, Progress& progress);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_COMPARE_H_
