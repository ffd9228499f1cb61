// Every version of a file, opened with HDF5 one after the other.
#ifndef H5MIRROR_CLI_VERBS_OPEN_VERSIONS_H_
#define H5MIRROR_CLI_VERBS_OPEN_VERSIONS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cli/verbs/hdf5_runners.h"

namespace h5mirror::tools {

// A version that does not open, and why.
using BadVersionSink = absl::FunctionRef<void(int64_t version, const std::string& message)>;

// Newest first; returns how many were opened. Versions that are pruned meanwhile are left out.
// Errors: those of GetFile and ListVersions.
absl::StatusOr<int64_t> OpenEveryVersion(Context& context, rpc::Client& client,
                                         const std::string& file, const VersionOpener& opener,
                                         BadVersionSink sink);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_OPEN_VERSIONS_H_
