#include "rpc/follow_stream.h"

#include "grpcpp/client_context.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/mirror_stream.h"
#include "rpc/status.h"

namespace h5mirror::rpc {
namespace {

class Follow final : public FollowStream {
 public:
  Follow(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
         const v1::FollowFileRequest& request)
      : options_(options), stub_(v1::Snapshots::NewStub(channel)) {
    Authorize(options_, context_);
    reader_ = stub_->FollowFile(&context_, request);
  }
  ~Follow() override {
    if (finished_) return;
    context_.TryCancel();
    v1::FollowFileResponse rest;
    while (reader_->Read(&rest)) {
    }
    static_cast<void>(reader_->Finish());
  }

  bool Read(v1::FollowFileResponse& message) override { return reader_->Read(&message); }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override {
    finished_ = true;
    return NameServer(options_, FromGrpc(reader_->Finish()));
  }

 private:
  const ClientOptions options_;
  const std::unique_ptr<v1::Snapshots::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::FollowFileResponse>> reader_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<FollowStream> StartFollowStream(const std::shared_ptr<grpc::Channel>& channel,
                                                const ClientOptions& options,
                                                const v1::FollowFileRequest& request) {
  return std::make_unique<Follow>(channel, options, request);
}

}  // namespace h5mirror::rpc
