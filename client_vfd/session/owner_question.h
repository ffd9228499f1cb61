// The question to one server of a cluster whether it serves a file: Files.GetFile, which the owner
// of the file's cell answers from memory, under its guard. Another server names the owner.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_OWNER_QUESTION_H_
#define H5MIRROR_CLIENT_VFD_SESSION_OWNER_QUESTION_H_

#include <grpc/support/time.h>

#include <functional>
#include <memory>
#include <string>

#include "client_vfd/session/queue_user.h"
#include "client_vfd/session/session_host.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_unary_call.h"
#include "h5mirror/v1/files.grpc.pb.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

// The sender thread's own.
class OwnerQuestion final : public QueueUser {
 public:
  // Asks. `answered` is called once, in Handle().
  OwnerQuestion(const rpc::ClientOptions& options, std::shared_ptr<grpc::Channel> channel,
                const std::string& name, gpr_timespec deadline, grpc::CompletionQueue* queue,
                std::function<void(const ServerAnswer&)> answered);
  OwnerQuestion(const OwnerQuestion&) = delete;
  OwnerQuestion& operator=(const OwnerQuestion&) = delete;

  bool Handle(int op, bool ok) override;
  void Cancel() override { context_.TryCancel(); }
  void Leave() override { Cancel(); }

 private:
  const std::function<void(const ServerAnswer&)> answered_;
  const std::unique_ptr<v1::Files::Stub> stub_;
  grpc::ClientContext context_;
  v1::GetFileResponse response_;
  grpc::Status status_;
  Tag tag_{this, 0};
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::GetFileResponse>> call_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OWNER_QUESTION_H_
