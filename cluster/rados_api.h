// The face of libh5mirror_cluster.so: registry and fencing in Ceph. C++ objects pass it, so both
// sides must be of one build: the loader (cluster/load_rados.h) compares `release`.
#ifndef H5MIRROR_CLUSTER_RADOS_API_H_
#define H5MIRROR_CLUSTER_RADOS_API_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/fencer.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// Where a registry lies in Ceph.
struct RadosPlace {
  std::string conf;        // Ceph's configuration; empty: its usual places
  std::string id;          // "h5mirror" for client.h5mirror; empty: Ceph's default, admin
  std::string pool;        // of the object
  std::string object;      // made where there is none
  std::string filesystem;  // in which sessions are ended; empty: the cluster's default one
};

// One connection to a cluster. Must outlive the use of its parts.
class RadosCluster {
 public:
  virtual ~RadosCluster() = default;
  virtual Registry& registry() = 0;
  virtual Fencer& fencer() = 0;
  // The addresses of this connection: to be fenced with those of the server's mount.
  virtual std::vector<std::string> Addresses() = 0;
};

struct RadosApi {
  size_t size;          // of this struct
  const char* release;  // kVersion
  // Errors: kUnavailable       the cluster does not answer within 30 s.
  //         kNotFound          no configuration, or no such pool.
  //         kPermissionDenied  the key, or its caps.
  absl::StatusOr<std::unique_ptr<RadosCluster>> (*open)(const RadosPlace& place);
};

using GetRadosApi = const RadosApi* (*)();
inline constexpr char kRadosModuleFile[] = "libh5mirror_cluster.so";
inline constexpr char kRadosModuleSymbol[] = "h5mirror_cluster_api";

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RADOS_API_H_
