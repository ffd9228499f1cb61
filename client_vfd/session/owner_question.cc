#include "client_vfd/session/owner_question.h"

#include <utility>

#include "rpc/channel.h"
#include "rpc/status.h"

namespace h5mirror::vfd {

OwnerQuestion::OwnerQuestion(const rpc::ClientOptions& options,
                             std::shared_ptr<grpc::Channel> channel, const std::string& name,
                             gpr_timespec deadline, grpc::CompletionQueue* queue,
                             std::function<void(const ServerAnswer&)> answered)
    : answered_(std::move(answered)), stub_(v1::Files::NewStub(std::move(channel))) {
  rpc::Authorize(options, context_);
  context_.set_deadline(deadline);
  v1::GetFileRequest request;
  request.set_name(name);
  call_ = stub_->AsyncGetFile(&context_, request, queue);
  call_->Finish(&response_, &status_, &tag_);
}

bool OwnerQuestion::Handle(int /*op*/, bool /*ok*/) {
  answered_({rpc::FromServer(status_), context_.peer(), response_.file().lease().token(),
             response_.file().file_id()});
  return true;
}

}  // namespace h5mirror::vfd
