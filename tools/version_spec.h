// FILE@VERSION on the command line.
#ifndef H5MIRROR_TOOLS_VERSION_SPEC_H_
#define H5MIRROR_TOOLS_VERSION_SPEC_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// A version as the user names it.
struct VersionSpec {
  // The number, from 1; 0: counted back from the newest.
  int64_t number = 0;
  // With `number` 0: how many versions before the newest. 0 is `latest`.
  int64_t back = 0;
  bool operator==(const VersionSpec&) const = default;
};

struct FileAtVersion {
  std::string file;
  VersionSpec version;
};

// "12", "latest" or "latest-K". kInvalidArgument quotes the text and says what would be right.
absl::StatusOr<VersionSpec> ParseVersionSpec(std::string_view text);

// What follows the last '@' is the version; names may hold others. kInvalidArgument where
// there is no '@'.
absl::StatusOr<FileAtVersion> ParseFileAtVersion(std::string_view text);

// The number that `spec` means for the file now. `latest-K` counts the versions that exist.
// kNotFound where the history is not that long.
absl::StatusOr<int64_t> ResolveVersion(rpc::Client& client, const std::string& name,
                                       const VersionSpec& spec);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_VERSION_SPEC_H_
