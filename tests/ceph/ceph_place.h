// Mounts of the cluster that tests/ceph/run has started.
#ifndef H5MIRROR_TESTS_CEPH_CEPH_PLACE_H_
#define H5MIRROR_TESTS_CEPH_CEPH_PLACE_H_

#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "ceph/ceph_env.h"

namespace h5mirror::ceph {

inline RootUrl ClusterUrl() {
  const char* const conf = getenv("H5M_TEST_CEPHFS_CONF");
  return {"/", conf == nullptr ? "" : conf, "", ""};
}

inline absl::StatusOr<std::unique_ptr<MountedEnv>> MountCluster(FencedListener on_fenced) {
  if (ClusterUrl().conf.empty()) {
    return absl::FailedPreconditionError("H5M_TEST_CEPHFS_CONF is not set: use tests/ceph/run");
  }
  return CephEnv::Open(ClusterUrl(), std::move(on_fenced));
}

// A new directory, absolute within the mount.
inline absl::StatusOr<std::string> MakeTestRoot(Env& env) {
  const std::string name = HexOf(RandomBytes16());
  auto tree = env.OpenTree("/");
  if (!tree.ok()) return tree.status();
  if (absl::Status made = (*tree)->MakeDirectory(name, 0755); !made.ok()) return made;
  return "/" + name;
}

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_TESTS_CEPH_CEPH_PLACE_H_
