// Makes this process a server of the cluster that its configuration names.
#ifndef H5MIRROR_SERVER_OPEN_CLUSTER_H_
#define H5MIRROR_SERVER_OPEN_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "archive/root_archive.h"
#include "ceph/module_api.h"
#include "onion_store/store.h"
#include "server/cluster/cluster.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Reads and prepares the registry; joins nothing yet. `options` are those of a store of all cells
// together, but for root and archive. Each cell has a part of `archive`; null: there is none.
// `on_fenced` and `on_lost` are told once, and must end the process at
// once: the root's file system, or the other servers, have gone on without this one.
// Errors: kInvalidArgument, kFailedPrecondition  the configuration, or the root's file system, is
//                                                none of a cluster.
//         kUnavailable                           the registry does not answer.
//         those of RegistryHolder::Open().
absl::StatusOr<std::unique_ptr<Cluster>> OpenCluster(
    const Config& config, const store::StoreOptions& options,
    std::shared_ptr<archive::RootArchive> archive, ceph::FencedListener on_fenced,
    std::function<void(const absl::Status& why)> on_lost);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_OPEN_CLUSTER_H_
