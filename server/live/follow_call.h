// One call of FollowFile.
#ifndef H5MIRROR_SERVER_LIVE_FOLLOW_CALL_H_
#define H5MIRROR_SERVER_LIVE_FOLLOW_CALL_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "server/calls/call.h"
#include "server/calls/fair_pool.h"
#include "server/live/publisher.h"
#include "server/live/snapshot_table.h"

namespace h5mirror::server {

// The objects that calls share. They must outlive the calls, but not the calls' states.
struct FollowEnvironment {
  const ServiceEnvironment& service;
  Publisher& publisher;
  SnapshotTable& table;
  WorkerPool& workers;
};

// gRPC destroys it at the end. Workers and the publisher may still hold its state then. It holds no
// thread between two messages.
class FollowCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  FollowCall(FollowEnvironment environment, v1::FollowFileRequest request);
  ~FollowCall() override;

  // `late`: checks that a worker makes first.
  void Begin(Callers::Ticket ticket, LateCheck late);
  void Refuse(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  struct State;

  const std::shared_ptr<State> state_;
  Callers::Ticket ticket_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_FOLLOW_CALL_H_
