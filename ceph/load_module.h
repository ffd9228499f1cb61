// Loads libh5mirror_ceph.so, so that h5mirrord runs where there is no Ceph.
#ifndef H5MIRROR_CEPH_LOAD_MODULE_H_
#define H5MIRROR_CEPH_LOAD_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ceph/module_api.h"

namespace h5mirror::ceph {

// The module stays loaded. Thread-safe.
// Errors: kFailedPrecondition  the module or libcephfs is not there, or is of another release.
absl::StatusOr<const ModuleApi*> LoadModule();

// Errors: as above, and as ModuleApi::mount.
absl::StatusOr<std::unique_ptr<MountedEnv>> Mount(const RootUrl& url, FencedListener on_fenced);

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_LOAD_MODULE_H_
