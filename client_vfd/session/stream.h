// One MirrorFile call as completion-queue operations: at most one write and one read under way.
// Everything here runs on the sender thread; nothing blocks.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STREAM_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "h5mirror/v1/mirror.pb.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

// Told about a stream's progress, on the sender thread.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  // The stream can take the next Write().
  virtual void OnWritable() = 0;
  virtual void OnResponse(const v1::MirrorFileResponse& response) = 0;
  // The stream has ended; nothing follows. OK only after HalfClose().
  virtual void OnEnded(const absl::Status& status) = 0;
};

enum class Last { kNo, kYes };

class Stream {
 public:
  // What the completion queue gives back.
  struct Tag {
    enum class Op { kStart, kWrite, kRead, kFinish };
    Stream* stream;
    Op op;
  };

  // Starts the call. `owner` must outlive the stream or be taken away by Abandon().
  Stream(const rpc::ClientOptions& options, std::shared_ptr<grpc::Channel> channel,
         grpc::CompletionQueue* queue, StreamOwner* owner);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Only after OnWritable(), once each. kYes half-closes behind it.
  void Write(const grpc::ByteBuffer& message, Last last);
  // Half-closes, behind the write under way if there is one.
  void HalfClose();
  void Cancel() { context_.TryCancel(); }
  // The owner hears nothing more.
  void Abandon() { owner_ = nullptr; }

  // Handles a completion. True when the stream is finished and may be destroyed.
  bool Handle(Tag::Op op, bool ok);

 private:
  void Finish();

  StreamOwner* owner_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer incoming_;
  grpc::Status status_;
  Tag start_{this, Tag::Op::kStart}, write_{this, Tag::Op::kWrite}, read_{this, Tag::Op::kRead},
      finish_{this, Tag::Op::kFinish};
  int under_way_ = 0;
  bool finishing_ = false;
  bool finished_ = false;
  bool half_closed_ = false;
  // The start counts as a write: gRPC keeps both in one set of operations.
  bool writing_ = true;
  bool half_close_wanted_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STREAM_H_
