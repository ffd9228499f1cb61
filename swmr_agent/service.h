// What readers on this host ask the agent: those calls of Snapshots and Versions that readers make,
// answered from memory where the agent follows the file, else passed on to the server.
#ifndef H5MIRROR_SWMR_AGENT_SERVICE_H_
#define H5MIRROR_SWMR_AGENT_SERVICE_H_

#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "rpc/cut_map_format.h"
#include "swmr_agent/agent.h"

namespace h5mirror::agent {

// The server that is meant comes with each call (rpc/agent_socket.h). Any error means: ask the
// server itself. Thread-safe; `agent` must outlive it.
class SnapshotsFromMemory final : public v1::Snapshots::Service {
 public:
  explicit SnapshotsFromMemory(Agent& agent) : agent_(agent) {}

  grpc::Status ReadSnapshot(grpc::ServerContext* context, const v1::ReadSnapshotRequest* request,
                            grpc::ServerWriter<v1::ReadSnapshotResponse>* writer) override;
  grpc::Status CloseSnapshot(grpc::ServerContext* context, const v1::CloseSnapshotRequest* request,
                             v1::CloseSnapshotResponse* response) override;

 private:
  Agent& agent_;
};

class VersionsFromMemory final : public v1::Versions::Service {
 public:
  explicit VersionsFromMemory(Agent& agent) : agent_(agent) {}

  grpc::Status ReadVersion(grpc::ServerContext* context, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override;
  grpc::Status FindVersion(grpc::ServerContext* context, const v1::FindVersionRequest* request,
                           v1::FindVersionResponse* response) override;

 private:
  Agent& agent_;
};

// What is to be mapped of a cut or version that readers have open here. Any error: nothing.
absl::StatusOr<std::shared_ptr<const CutMemory>> FindMemory(Agent& agent,
                                                            const rpc::CutMapQuestion& question);

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_SERVICE_H_
