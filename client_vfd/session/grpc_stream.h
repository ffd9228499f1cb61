// A stream as completion-queue operations: at most one write and one read under way. Everything
// here runs on the sender thread; nothing blocks.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_GRPC_STREAM_H_
#define H5MIRROR_CLIENT_VFD_SESSION_GRPC_STREAM_H_

#include <memory>

#include "client_vfd/session/stream.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

class GrpcStream final : public Stream {
 public:
  // The tag of an operation in the completion queue.
  struct Tag {
    enum class Op { kStart, kWrite, kRead, kFinish };
    GrpcStream* stream;
    Op op;
  };

  // Starts the call. `owner` must outlive the stream or be taken away by Abandon().
  GrpcStream(const rpc::ClientOptions& options, std::shared_ptr<grpc::Channel> channel,
             grpc::CompletionQueue* queue, StreamOwner* owner);
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  void Write(const grpc::ByteBuffer& message, Last last) override;
  void HalfClose() override;
  void Cancel() override { context_.TryCancel(); }
  void Abandon() override { owner_ = nullptr; }

  // Handles a completion. True when the stream is finished and may be destroyed.
  bool Handle(Tag::Op op, bool ok);

 private:
  void Finish();
  void ReadNext();
  void OnStarted(bool ok);
  void OnWritten(bool ok);
  void OnRead(bool ok);

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

#endif  // H5MIRROR_CLIENT_VFD_SESSION_GRPC_STREAM_H_
