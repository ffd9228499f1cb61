// The Cluster service; see proto/h5mirror/v1/cluster.proto.
#ifndef H5MIRROR_SERVER_CLUSTER_CLUSTER_SERVICE_H_
#define H5MIRROR_SERVER_CLUSTER_CLUSTER_SERVICE_H_

#include "h5mirror/v1/cluster.grpc.pb.h"
#include "server/calls/call.h"
#include "server/cluster/operations.h"

namespace h5mirror::server {

// Thread-safe.
class ClusterService final : public v1::Cluster::Service {
 public:
  // The store of `environment` knows the cluster, if it is of one.
  explicit ClusterService(const ServiceEnvironment& environment)
      : environment_(environment), cluster_(OperationsOf(environment.store)) {}

  grpc::Status ListCells(grpc::ServerContext* context, const v1::ListCellsRequest* request,
                         v1::ListCellsResponse* response) override;
  grpc::Status GetCluster(grpc::ServerContext* context, const v1::GetClusterRequest* request,
                          v1::GetClusterResponse* response) override;
  grpc::Status MoveCell(grpc::ServerContext* context, const v1::MoveCellRequest* request,
                        v1::MoveCellResponse* response) override;
  grpc::Status DrainServer(grpc::ServerContext* context, const v1::DrainServerRequest* request,
                           v1::DrainServerResponse* response) override;
  grpc::Status EvictServer(grpc::ServerContext* context, const v1::EvictServerRequest* request,
                           v1::EvictServerResponse* response) override;

 private:
  // RunCall() of an operator. `shown`: what the call changes, for the audit log; empty: nothing.
  grpc::Status Operate(const grpc::ServerContext& context, const char* method, std::string shown,
                       absl::FunctionRef<absl::Status(ClusterOperations&, const Principal&)> body);

  const ServiceEnvironment environment_;
  ClusterOperations* const cluster_;  // null: this server is in none
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_CLUSTER_SERVICE_H_
