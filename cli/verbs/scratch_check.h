// The whole way once: a scratch file through the plugin to the server and back.
#ifndef H5MIRROR_CLI_VERBS_SCRATCH_CHECK_H_
#define H5MIRROR_CLI_VERBS_SCRATCH_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/process/libhdf5.h"
#include "rpc/client.h"

namespace h5mirror::tools {

struct ScratchResult {
  std::string name;  // on the server: "h5mirror-doctor/HOST-USER.h5", one more version a run
  int64_t version = 0;
  absl::Duration took;  // writing, closing and reading back
  // The server's clock at the version less the local one at the close of the file, roughly.
  absl::Duration clock_skew;
};

// Writes the file in ~/.cache/h5mirror with `library` in a child, compares it with the
// server's newest version. Its place and name stay the same, so that runs add versions to one
// file. The status says which step failed.
absl::StatusOr<ScratchResult> CheckScratchFile(Context& context, rpc::Client& client,
                                               const LibHdf5& library,
                                               const std::string& plugin_dir);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_SCRATCH_CHECK_H_
