// Calls to a server about its cluster.
#ifndef H5MIRROR_RPC_CLUSTER_CALLS_H_
#define H5MIRROR_RPC_CLUSTER_CALLS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/cluster.grpc.pb.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// Thread-safe. Calls have 30 s each and name the server in their errors. kUnimplemented: the
// server's release knows of no clusters.
class ClusterCalls {
 public:
  // As Client::Connect(); of several servers to one that answers, any of which knows the cluster.
  // Where it stops answering, another one is asked. A move, drain or evict is told once: after
  // kUnavailable it may have been done.
  static absl::StatusOr<std::unique_ptr<ClusterCalls>> Connect(const ClientOptions& options,
                                                               absl::Duration connect_timeout,
                                                               absl::Duration refused_max);
  virtual ~ClusterCalls() = default;

  // As given to Connect().
  virtual const ClientOptions& options() const = 0;
  virtual absl::StatusOr<v1::ListCellsResponse> ListCells(const v1::ListCellsRequest&) = 0;
  virtual absl::StatusOr<v1::GetClusterResponse> GetCluster() = 0;
  virtual absl::StatusOr<v1::MoveCellResponse> MoveCell(const v1::MoveCellRequest&) = 0;
  virtual absl::Status DrainServer(const v1::DrainServerRequest&) = 0;
  virtual absl::Status EvictServer(const v1::EvictServerRequest&) = 0;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CLUSTER_CALLS_H_
