// The agent's service for readers on this host: those calls of Snapshots and Versions that readers
// make, answered from memory where the agent follows the file, else passed on to the server.
#ifndef H5MIRROR_SWMR_AGENT_SERVICE_H_
#define H5MIRROR_SWMR_AGENT_SERVICE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "rpc/cut_map_format.h"
#include "swmr_agent/agent.h"
#include "swmr_agent/block_filler.h"
#include "swmr_agent/cut_opener.h"

namespace h5mirror::agent {

// When a call was last under way. Thread-safe.
class LastCall {
 public:
  // A call, from its beginning to its end.
  class Scope {
   public:
    explicit Scope(LastCall& last) : last_(last) { ++last_.running_; }
    ~Scope() {
      last_.end_ns_ = absl::GetCurrentTimeNanos();
      --last_.running_;
    }
    Scope(const Scope&) = delete;

   private:
    LastCall& last_;
  };
  // Now, while one is. The distant past: none ever was.
  absl::Time time() const { return running_ > 0 ? absl::Now() : absl::FromUnixNanos(end_ns_); }

 private:
  std::atomic<int> running_{0};
  std::atomic<int64_t> end_ns_{0};
};

// The server that is meant comes with each call (rpc/agent_socket.h). Any error means: ask the
// server itself. All calls come from `user` of this host, whose rights are looked at for each call,
// and again while a long one runs. Thread-safe; `agent` must outlive it.
class SnapshotsFromMemory final : public v1::Snapshots::Service {
 public:
  SnapshotsFromMemory(Agent& agent, uid_t user) : agent_(agent), user_(user) {}

  grpc::Status ReadSnapshot(grpc::ServerContext* context, const v1::ReadSnapshotRequest* request,
                            grpc::ServerWriter<v1::ReadSnapshotResponse>* writer) override;
  grpc::Status CloseSnapshot(grpc::ServerContext* context, const v1::CloseSnapshotRequest* request,
                             v1::CloseSnapshotResponse* response) override;

  // As LastCall::time().
  absl::Time last_call() const { return last_call_.time(); }

 private:
  Agent& agent_;
  const uid_t user_;
  LastCall last_call_;
};

class VersionsFromMemory final : public v1::Versions::Service {
 public:
  VersionsFromMemory(Agent& agent, uid_t user) : agent_(agent), user_(user) {}

  grpc::Status ReadVersion(grpc::ServerContext* context, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override;
  grpc::Status FindVersion(grpc::ServerContext* context, const v1::FindVersionRequest* request,
                           v1::FindVersionResponse* response) override;

  // As LastCall::time().
  absl::Time last_call() const { return last_call_.time(); }

 private:
  Agent& agent_;
  const uid_t user_;
  LastCall last_call_;
};

// Opens the newest cut of a file for a reader, as ReadSnapshot does, with its metadata to map as
// far as there is memory for it. May wait for the server. Any error: open it through gRPC.
absl::StatusOr<OpenedCut> OpenCut(Agent& agent, uid_t user, const rpc::CutMapQuestion& question);
// The memory to map of a cut or version that readers have open here, for a user whose rights to
// it are known. Any error: nothing. Waits for no server.
absl::StatusOr<std::shared_ptr<const CutMemory>> FindMemory(Agent& agent, uid_t user,
                                                            const rpc::CutMapQuestion& question);
// The same, of its blocks. The answer's check() may wait for the server.
absl::StatusOr<SharedView> FindSharedBlocks(Agent& agent, uid_t user,
                                            const rpc::CutMapQuestion& question);

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_SERVICE_H_
