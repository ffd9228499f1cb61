// The connection, registry and fencer of one cluster.
#ifndef H5MIRROR_CLUSTER_RADOS_RADOS_CLUSTER_H_
#define H5MIRROR_CLUSTER_RADOS_RADOS_CLUSTER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cluster/rados_api.h"

namespace h5mirror::cluster {

// RadosApi::open.
absl::StatusOr<std::unique_ptr<RadosCluster>> OpenRadosCluster(const RadosPlace& place);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RADOS_RADOS_CLUSTER_H_
