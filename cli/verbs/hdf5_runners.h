// The parts of the CLI's verbs that need HDF5. Only the helper program h5mirror-diff links HDF5:
// the CLI knows the flags, and starts the helper in its place with the same command line.
#ifndef H5MIRROR_CLI_VERBS_HDF5_RUNNERS_H_
#define H5MIRROR_CLI_VERBS_HDF5_RUNNERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/verbs/verb_diff.h"
#include "cli/verbs/verb_find.h"
#include "cli/verbs/verb_log.h"
#include "rpc/client.h"
#include "sync/cut_changes.h"

namespace h5mirror::tools {

// One version of a file, on a server.
struct VersionToOpen {
  std::string file;  // under the server's root
  v1::Version version;
  uint32_t page_size_bytes = 4096;
};

// Opens a version with HDF5 and looks at every object in it, but not at raw data.
// Errors: kInternal HDF5's error; those of ReadVersion.
using VersionOpener = std::function<absl::Status(rpc::Client&, const VersionToOpen&)>;

// In the CLI all are null.
struct Hdf5Runners {
  DiffRunner diff = nullptr;
  VersionOpener open = nullptr;
  CutComparerFactory compare_cuts = nullptr;
  ObjectLogRunner log_object = nullptr;
  ObjectLogRunner blame = nullptr;
  FindRunner find = nullptr;
};

// Runs the helper, which reads `arguments` with the same code, in this process's place; its exit
// code. `what` needs it, for the error. kNotFound and others: it is missing, or does not start.
absl::StatusOr<int> RunHdf5Helper(const char* what, const std::vector<std::string>& arguments);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_HDF5_RUNNERS_H_
