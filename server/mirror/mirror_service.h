// The Mirror service: all frame streams, on a few completion queues with a thread each.
//
// It uses the asynchronous raw API, which is twice as fast as the synchronous one. Messages stay
// byte buffers, and the next Read is armed before the last frame is written to disk.
#ifndef H5MIRROR_SERVER_MIRROR_MIRROR_SERVICE_H_
#define H5MIRROR_SERVER_MIRROR_MIRROR_SERVICE_H_

#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/mirror.grpc.pb.h"
#include "server/calls/callers.h"
#include "server/calls/fair_pool.h"
#include "server/mirror/session.h"

namespace h5mirror::server {

class MirrorStream;

// Thread-safe. Life: AddQueues, (server starts), Start, BeginStop, (server shuts down), Stop.
class MirrorService final : public v1::Mirror::WithRawMethod_MirrorFile<v1::Mirror::Service> {
 public:
  // Everything referenced must outlive the service.
  MirrorService(const SessionEnvironment& environment, Callers& callers);
  ~MirrorService() override;

  // One queue for each thread, before the server is built.
  void AddQueues(grpc::ServerBuilder& builder, int queue_count);
  // Starts the threads.
  void Start();
  // Takes no new sessions. Ends the others with kUnavailable once their barriers are durable.
  void BeginStop();
  // Ends sessions of files whose names begin with `prefix`, as BeginStop() does. Returns how many
  // have not ended yet.
  size_t EndBelow(std::string_view prefix);
  // After Server::Shutdown(): waits for the last events and joins the threads.
  void Stop();

  // To be called several times a second: ends expired leases, looks at slow sessions.
  void OnTimer();
  int session_count() const;

 private:
  friend class MirrorStream;

  // kUnavailable: the server is stopping.
  absl::Status AddSession(MirrorStream* stream, std::shared_ptr<Session> session);
  void RemoveSession(MirrorStream* stream);
  // Counts a stream from its creation until it is deleted.
  void StreamMade();
  void StreamGone();
  // Waits for the next stream on `queue`, unless the service has stopped. While kOthersMax streams
  // are no sessions, it waits until one of them has gone: a client that opens and resets streams
  // makes them faster than gRPC frees them. CallGate bounds the calls that wait meanwhile.
  void Listen(grpc::ServerCompletionQueue& queue);
  static constexpr size_t kOthersMax = 64;
  // True: half of kOthersMax streams are no sessions. Then a refused stream is also cancelled,
  // because its client may not read the refusal.
  bool IsCrowded() const;
  size_t OtherCount() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Session>> Sessions() const;

  const SessionEnvironment environment_;
  Callers& callers_;
  WorkerPool openers_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::vector<std::thread> threads_;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool listening_ ABSL_GUARDED_BY(mutex_) = true;
  int stream_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<grpc::ServerCompletionQueue*> put_off_ ABSL_GUARDED_BY(mutex_);
  std::map<MirrorStream*, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_MIRROR_SERVICE_H_
