// Before a server joins its cluster: whether its configuration and the registry fit each other
// (docs/how-to/run-a-cluster.md).
#ifndef H5MIRROR_SERVER_CLUSTER_PREPARE_REGISTRY_H_
#define H5MIRROR_SERVER_CLUSTER_PREPARE_REGISTRY_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cluster/registry.h"
#include "server/settings/cluster_settings.h"

namespace h5mirror::server {

// The place of a root, as the servers of a cluster tell it to each other: of CephFS the path and
// the filesystem, without the key by which one server asks; else the absolute path without symbolic
// links.
std::string PlaceOfRoot(const std::filesystem::path& root);

// Whether two results of PlaceOfRoot() may be one place. A filesystem of Ceph that one of them does
// not name may be any.
bool IsOneRoot(const std::string& root, const std::string& other);

// Checks that the cluster has this root, and notes it where it has none yet. To be called behind
// the first open of a cell: a root that was mistyped has no cells, and is not kept. With another
// root a server would serve other files under the same names. Errors: kInvalidArgument names both;
// those of a registry.
absl::Status KeepRoot(cluster::Registry& registry, const ClusterSettings& settings,
                      const std::filesystem::path& root);

// Adds missing cells of the configuration to the registry, and checks that all servers have the
// same root, cells and times. A server of another root changes nothing. A root of this machine that
// is not there is left to KeepRoot(): its disk may be mounted later. Errors: kInvalidArgument names
// the difference; those of a registry.
absl::Status PrepareRegistry(cluster::Registry& registry, const ClusterSettings& settings,
                             const std::filesystem::path& root);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_PREPARE_REGISTRY_H_
