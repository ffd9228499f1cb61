// One frame stream in gRPC's asynchronous API. Turns events of a completion queue into calls of a
// Session, and the session's answers into writes.
#ifndef H5MIRROR_SERVER_MIRROR_MIRROR_STREAM_H_
#define H5MIRROR_SERVER_MIRROR_MIRROR_STREAM_H_

#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/alarm.h"
#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/mirror.pb.h"
#include "server/mirror/mirror_service.h"
#include "server/mirror/session.h"

namespace h5mirror::server {

// Events come on the queue's one thread; Send() and Finish() come from any. Deletes itself when the
// call is over and no operation is in flight.
class MirrorStream final : public SessionOutput {
 public:
  // Asks for the next call on `queue`.
  static void Listen(MirrorService& service, grpc::ServerCompletionQueue& queue);

  // An event of the queue. `tag` is one of ours.
  static void Dispatch(void* tag, bool ok);

  void Send(v1::MirrorFileResponse response) override;
  void Finish(const absl::Status& status) override;
  absl::Status Require(const Need& need, std::string claimed) override;

 private:
  enum class Operation { kRequest, kRead, kWrite, kFinish, kDone, kAlarm };
  struct Tag {
    MirrorStream* stream;
    Operation operation;
  };

  MirrorStream(MirrorService& service, grpc::ServerCompletionQueue& queue);
  ~MirrorStream() override;

  void OnStarted();
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnDone();
  void OnAlarm();
  void HandleMessage(const grpc::ByteBuffer& message);
  void OpenOnWorker(rpc::DecodedRequest request);
  absl::StatusOr<Callers::Ticket> Admit() const;

  // Asks for the next message, but not while the client does not read its answers, or too many
  // barriers wait.
  bool MayRead() const;
  void ArmRead();
  void ResumeReading();
  // Reads on once the caller's bandwidth has paid for the bytes that came. Its window fills
  // meanwhile, so the client waits too. No thread does.
  void HoldBack();
  void StartNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One operation has ended; deletes the stream with the last one.
  void Release();

  MirrorService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  Callers::Ticket ticket_;  // set on the queue's thread, before there is a session
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> call_{&context_};
  grpc::ByteBuffer incoming_;
  std::shared_ptr<Session> session_;  // set once, on the queue's thread
  bool paused_ = false;               // queue's thread only, as the next two
  bool held_back_ = false;            // by the caller's bandwidth
  uint64_t place_ = 0;                // of the last bytes: Callers::Ticket::CountBytes()
  std::atomic<uint64_t> received_bytes_{0};
  Tag request_tag_{this, Operation::kRequest};
  Tag read_tag_{this, Operation::kRead};
  Tag write_tag_{this, Operation::kWrite};
  Tag finish_tag_{this, Operation::kFinish};
  Tag done_tag_{this, Operation::kDone};
  Tag alarm_tag_{this, Operation::kAlarm};

  mutable absl::Mutex mutex_;
  std::deque<v1::MirrorFileResponse> answers_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> final_status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finish_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // the call is over: start nothing more
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);  // null, until it is held back
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_MIRROR_STREAM_H_
