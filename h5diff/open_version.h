// The work of `h5mirror verify --open-versions` on each version.
#ifndef H5MIRROR_H5DIFF_OPEN_VERSION_H_
#define H5MIRROR_H5DIFF_OPEN_VERSION_H_

#include "absl/status/status.h"
#include "cli/verbs/hdf5_runners.h"

namespace h5mirror::tools {

// See VersionOpener.
absl::Status OpenVersion(rpc::Client& client, const VersionToOpen& wanted);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_OPEN_VERSION_H_
