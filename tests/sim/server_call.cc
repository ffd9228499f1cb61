#include "tests/sim/server_call.h"

#include <utility>
#include <variant>

#include "base/strings.h"
#include "rpc/frame_codec.h"
#include "tests/sim/planted.h"

namespace h5mirror::sim {

std::shared_ptr<ServerCall> ServerCall::Begin(Server& server, Answers answers) {
  std::shared_ptr<ServerCall> call(new ServerCall(server, std::move(answers)));
  call->session_ = server::Session::Create(server.environment(), {"token", server::Rights::All()},
                                           "client", *call);
  server.Add(call.get());
  return call;
}

ServerCall::ServerCall(Server& server, Answers answers)
    : server_(server), answers_(std::move(answers)) {}

ServerCall::~ServerCall() {
  if (session_ != nullptr) session_->Detach();
  server_.Remove(this);
}

void ServerCall::OnMessage(std::string bytes) {
  if (session_ == nullptr) return;
  inbox_.push_back(std::move(bytes));
  Next();
}

void ServerCall::OnHalfClose() {
  if (session_ == nullptr) return;
  inbox_.push_back(std::nullopt);
  Next();
}

void ServerCall::OnBroken() {
  if (session_ == nullptr) return;
  inbox_.clear();
  const std::shared_ptr<server::Session> session = session_;
  session->OnLost();
  over_ = true;
}

void ServerCall::Vanish() {
  const bool was_over = std::exchange(over_, true);
  inbox_.clear();
  if (session_ == nullptr) return;
  session_->Detach();
  session_.reset();
  if (!was_over) answers_.vanished();
}

void ServerCall::OnTimer() {
  const std::shared_ptr<ServerCall> self = shared_from_this();
  if (session_ != nullptr) session_->OnTimer();
  Next();
}

void ServerCall::OnStop() {
  if (session_ != nullptr) session_->OnStop();
}

// One message at a time; after the first the next one waits until the file is open.
void ServerCall::Next() {
  const std::shared_ptr<ServerCall> self = shared_from_this();
  while (session_ != nullptr && !opening_ && !over_ && !inbox_.empty() && session_->MayRead()) {
    const std::optional<std::string> message = std::move(inbox_.front());
    inbox_.pop_front();
    if (!message) {
      session_->OnHalfClose();
    } else if (session_->WantsOpen()) {
      opening_ = true;
      server_.world().Spawn(&server_, [self, bytes = *message] {
        self->Handle(bytes);
        self->opening_ = false;
        self->Next();
      });
    } else {
      Handle(*message);
    }
  }
}

void ServerCall::Handle(const std::string& bytes) {
  const std::shared_ptr<server::Session> session = session_;
  if (session == nullptr) return;
  const grpc::Slice slice(bytes);
  absl::StatusOr<rpc::DecodedRequest> request = rpc::DecodeRequest(grpc::ByteBuffer(&slice, 1));
  if (!request.ok()) return session->OnBadRequest(request.status());
  Tamper(&*request);
  Tap(*request);
  session->OnRequest(*request);
}

void ServerCall::Tap(const rpc::DecodedRequest& request) {
  const auto* message = std::get_if<v1::MirrorFileRequest>(&request);
  if (message == nullptr) return;
  if (message->has_open()) {
    name_ = message->open().name();
    server_.world().Trace("server: open ", name_, " stream ", message->open().stream(), " ",
                          v1::Intent_Name(message->open().intent()), " base ",
                          message->open().base_cut());
  }
  if (!message->has_barrier()) return;
  const auto& time = message->barrier().client_time();
  client_ns_[message->barrier().seq()] = time.seconds() * 1'000'000'000 + time.nanos();
}

void ServerCall::Tap(const v1::MirrorFileResponse& response) {
  Golden& golden = server_.golden();
  if (response.has_opened()) {
    const auto file_id = FromByteString(response.opened().file_id());
    if (file_id.ok()) file_id_ = *file_id;
    server_.world().Trace(
        "server: opened ", name_, " ", v1::Relation_Name(response.opened().relation()), " cut ",
        response.opened().last_cut(), " durable ", response.opened().durable_cut(), " token ",
        response.opened().token(), " ", response.opened().state());
  } else if (response.has_cut_visible()) {
    const auto& cut = response.cut_visible();
    server_.world().Trace("server: ", name_, " seq ", cut.seq(), " is cut ", cut.cut());
    golden.OnVisible(name_, file_id_, cut.cut(), client_ns_[cut.seq()]);
  } else if (response.has_cut_durable()) {
    const auto& cut = response.cut_durable();
    server_.world().Trace("server: ", name_, " cut ", cut.cut(), " is durable, version ",
                          cut.version(), cut.unchanged() ? ", unchanged" : "");
    golden.OnDurable(name_, file_id_, cut.cut(), cut.version(), cut.unchanged());
    server_.NoteDurable();
  }
}

void ServerCall::Send(v1::MirrorFileResponse response) {
  if (over_) return;
  server_.NoteTold();
  Tap(response);
  answers_.response(response);
}

void ServerCall::Finish(const absl::Status& status) {
  if (over_) return;
  over_ = true;
  server_.world().Trace("server: ", name_, " ends: ", status.ToString());
  // The end of a call comes from within the session, so the session is told later that the listener
  // is gone.
  server_.world().After(absl::ZeroDuration(), [weak = weak_from_this()] {
    const std::shared_ptr<ServerCall> call = weak.lock();
    if (call != nullptr && call->session_ != nullptr) call->session_->OnLost();
  });
  answers_.ended(status);
}

}  // namespace h5mirror::sim
