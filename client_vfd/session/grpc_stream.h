// A stream as completion-queue operations: at most one write and one read under way. Everything
// here runs on the sender thread; nothing blocks.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_GRPC_STREAM_H_
#define H5MIRROR_CLIENT_VFD_SESSION_GRPC_STREAM_H_

#include <memory>
#include <string>

#include "client_vfd/session/queue_user.h"
#include "client_vfd/session/stream.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

class GrpcStream final : public Stream, public QueueUser {
 public:
  // Starts the call. `owner` must outlive the stream or be taken away by Abandon().
  GrpcStream(const rpc::ClientOptions& options, std::shared_ptr<grpc::Channel> channel,
             grpc::CompletionQueue* queue, StreamOwner* owner);
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  void Write(const grpc::ByteBuffer& message, Last last) override;
  void HalfClose() override;
  void Cancel() override {
    is_cancelled_ = true;
    context_.TryCancel();
  }
  void Abandon() override { owner_ = nullptr; }
  std::string Peer() const override { return context_.peer(); }

  bool Handle(int op, bool ok) override;
  void Leave() override {}  // Its session half-closes it.

 private:
  enum Op : int { kStart, kWrite, kRead, kFinish };

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
  Tag start_{this, kStart}, write_{this, kWrite}, read_{this, kRead}, finish_{this, kFinish};
  int under_way_ = 0;
  bool is_cancelled_ = false;  // here, not by the server
  bool finishing_ = false;
  bool finished_ = false;
  bool half_closed_ = false;
  // The start counts as a write: gRPC keeps both in one set of operations.
  bool writing_ = true;
  bool half_close_wanted_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_GRPC_STREAM_H_
