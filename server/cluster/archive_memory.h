// What a cluster remembers of its archive, in its registry: docs/design/049-cells.md, key
// "p/archive".
#ifndef H5MIRROR_SERVER_CLUSTER_ARCHIVE_MEMORY_H_
#define H5MIRROR_SERVER_CLUSTER_ARCHIVE_MEMORY_H_

#include "archive/cluster_mark.h"
#include "cluster/registry.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// By which the archive of `config.cluster` is known again. `registry` must outlive what it is given
// to, and is called from any thread.
archive::ClusterMark::Settings ClusterMarkOf(const Config& config, cluster::Registry& registry);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_ARCHIVE_MEMORY_H_
