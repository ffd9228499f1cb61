// Loads libh5mirror_cluster.so, so that programs run where there is no Ceph.
#ifndef H5MIRROR_CLUSTER_LOAD_RADOS_H_
#define H5MIRROR_CLUSTER_LOAD_RADOS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cluster/rados_api.h"

namespace h5mirror::cluster {

// The module stays loaded. Thread-safe.
// Errors: as RadosApi::open;
//         kFailedPrecondition  the module or Ceph's libraries are not there, or are of another
//                              release.
absl::StatusOr<std::unique_ptr<RadosCluster>> OpenRados(const RadosPlace& place);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_LOAD_RADOS_H_
