#include "server/mirror/mirror_stream.h"

#include <utility>

#include "base/status_macros.h"
#include "grpc/grpc.h"
#include "rpc/frame_codec.h"
#include "rpc/status.h"
#include "server/calls/call.h"
#include "server/door/refusal_log.h"

namespace h5mirror::server {
namespace {

// With this many unread answers, the server stops reading from the client.
constexpr size_t kAnswersMax = 1024;
// Less is not waited for: the next message waits longer.
constexpr absl::Duration kHoldBackMin = absl::Milliseconds(2);
// After so long it is asked again, as limits change.
constexpr absl::Duration kHoldBackMax = absl::Seconds(1);

grpc::ByteBuffer Serialize(const v1::MirrorFileResponse& response) {
  const std::string bytes = response.SerializeAsString();
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// A later cut_durable covers an earlier one, so a waiting one need not be sent; but one that
// names a version is somebody's commit.
bool Covers(const v1::MirrorFileResponse& later, const v1::MirrorFileResponse& earlier) {
  return later.has_cut_durable() && earlier.has_cut_durable() &&
         earlier.cut_durable().version() == 0;
}

}  // namespace

void MirrorStream::Listen(MirrorService& service, grpc::ServerCompletionQueue& queue) {
  auto* stream = new MirrorStream(service, queue);
  stream->context_.AsyncNotifyWhenDone(&stream->done_tag_);
  service.RequestMirrorFile(&stream->context_, &stream->call_, &queue, &queue,
                            &stream->request_tag_);
}

MirrorStream::MirrorStream(MirrorService& service, grpc::ServerCompletionQueue& queue)
    : service_(service), queue_(queue), under_way_(1) {
  service_.StreamMade();
}

MirrorStream::~MirrorStream() {
  if (session_ != nullptr) session_->Detach();
}

void MirrorStream::Dispatch(void* tag, bool ok) {
  const Tag& event = *static_cast<Tag*>(tag);
  MirrorStream* stream = event.stream;
  switch (event.operation) {
    case Operation::kRequest:
      if (ok) stream->OnStarted();  // Else the server has shut down, and no kDone follows.
      break;
    case Operation::kRead:
      stream->OnRead(ok);
      break;
    case Operation::kWrite:
      stream->OnWritten(ok);
      break;
    case Operation::kFinish:
      break;
    case Operation::kDone:
      stream->OnDone();
      break;
    case Operation::kAlarm:
      stream->OnAlarm();
      break;
  }
  stream->Release();
}

void MirrorStream::OnStarted() {
  service_.Listen(queue_);
  {
    absl::MutexLock lock(&mutex_);
    ++under_way_;  // kDone comes from now on.
  }
  absl::StatusOr<Callers::Ticket> ticket = Admit();
  if (!ticket.ok()) {
    Finish(ticket.status());
    if (service_.IsCrowded()) context_.TryCancel();
    return;
  }
  ticket_ = *std::move(ticket);
  std::shared_ptr<Session> session =
      Session::Create(service_.environment_, ticket_.principal(), context_.peer(), *this);
  session_ = session;
  ticket_.OnRevoke([session](const absl::Status& why) { session->OnRevoked(why); });
  if (const absl::Status added = service_.AddSession(this, std::move(session)); !added.ok()) {
    session_->OnRevoked(added);
    return;
  }
  ArmRead();
}

absl::StatusOr<Callers::Ticket> MirrorStream::Admit() const {
  auto ticket =
      service_.callers_.Admit(context_, "MirrorFile", AnyFile(Right::kWrite), CallUse::kSession);
  if (absl::IsUnauthenticated(ticket.status())) {
    service_.environment_.metrics.AuthenticationFailed();
  }
  // Callers has logged refusals for a limit already.
  if (!ticket.ok() && !absl::IsResourceExhausted(ticket.status())) {
    RefusalLog::Instance().Warn("MirrorFile", context_.peer(), ticket.status(),
                                service_.environment_.clock.Monotonic());
  }
  return ticket;
}

absl::Status MirrorStream::Require(const Need& need, std::string claimed) {
  H5M_RETURN_IF_ERROR(ticket_.Require(need));
  if (!claimed.empty()) ticket_.Began(std::move(claimed));
  return absl::OkStatus();
}

void MirrorStream::OnRead(bool ok) {
  if (!ok) {
    // Either the client has half-closed, or the stream broke: gRPC tells the two apart.
    const bool broken = grpc_call_failed_before_recv_message(context_.c_call()) != 0;
    return broken ? session_->OnLost() : session_->OnHalfClose();
  }
  grpc::ByteBuffer message;
  message.Swap(&incoming_);
  received_bytes_ += message.Length();
  place_ = ticket_.CountBytes(message.Length());
  HandleMessage(message);
}

void MirrorStream::HandleMessage(const grpc::ByteBuffer& message) {
  absl::StatusOr<rpc::DecodedRequest> request = rpc::DecodeRequest(message);
  if (!request.ok()) return session_->OnBadRequest(request.status());
  if (session_->WantsOpen()) return OpenOnWorker(*std::move(request));
  const bool is_over = ticket_.ReadAfter(place_, /*is_first=*/true) >= kHoldBackMin;
  // The next message travels while this one is written to disk.
  const bool read_ahead = !is_over && MayRead();
  if (read_ahead) ArmRead();
  session_->OnRequest(*request);
  if (read_ahead) return;
  paused_ = true;
  if (is_over) HoldBack();
  ResumeReading();
}

void MirrorStream::HoldBack() {
  const absl::Duration wait = ticket_.ReadAfter(place_, /*is_first=*/false);
  held_back_ = wait >= kHoldBackMin;
  session_->SetHeldBack(held_back_);
  if (!held_back_) return;
  absl::MutexLock lock(&mutex_);
  if (closed_ || final_status_.has_value()) return;
  ++under_way_;
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(&queue_, absl::ToChronoTime(absl::Now() + std::min(wait, kHoldBackMax)), &alarm_tag_);
}

void MirrorStream::OnAlarm() {
  HoldBack();
  ResumeReading();
}

void MirrorStream::OpenOnWorker(rpc::DecodedRequest request) {
  {
    absl::MutexLock lock(&mutex_);
    ++under_way_;
  }
  service_.openers_.Schedule([this, request = std::move(request)] {
    session_->OnRequest(request);
    ArmRead();
    Release();
  });
}

bool MirrorStream::MayRead() const {
  if (!session_->MayRead()) return false;
  absl::MutexLock lock(&mutex_);
  return answers_.size() < kAnswersMax;
}

void MirrorStream::ArmRead() {
  absl::MutexLock lock(&mutex_);
  if (closed_ || final_status_.has_value()) return;
  ++under_way_;
  call_.Read(&incoming_, &read_tag_);
}

void MirrorStream::ResumeReading() {
  if (!paused_ || held_back_ || !MayRead()) return;
  paused_ = false;
  ArmRead();
}

void MirrorStream::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    answers_.pop_front();
    if (!ok) closed_ = true;  // The call is dead; kRead or kDone says so too.
    StartNext();
  }
  if (ok) ResumeReading();
}

void MirrorStream::OnDone() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
  }
  if (session_ != nullptr) session_->OnLost();  // Nothing, where it has ended.
}

void MirrorStream::Send(v1::MirrorFileResponse response) {
  absl::MutexLock lock(&mutex_);
  if (closed_ || final_status_.has_value()) return;
  // A sign of life, where there is another.
  if (response.response_case() == v1::MirrorFileResponse::RESPONSE_NOT_SET && !answers_.empty()) {
    return;
  }
  // The front one may be on its way already.
  if (answers_.size() > 1 && Covers(response, answers_.back())) {
    answers_.back() = std::move(response);
  } else {
    answers_.push_back(std::move(response));
  }
  StartNext();
}

void MirrorStream::Finish(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (final_status_.has_value()) return;
  ticket_.Done(status, {.sent = 0, .received = received_bytes_});
  if (closed_) return;
  final_status_ = rpc::ToGrpc(status);
  if (alarm_ != nullptr) alarm_->Cancel();
  StartNext();
}

void MirrorStream::StartNext() {
  if (writing_ || closed_ || finish_started_) return;
  if (!answers_.empty()) {
    writing_ = true;
    ++under_way_;
    call_.Write(Serialize(answers_.front()), &write_tag_);
  } else if (final_status_.has_value()) {
    finish_started_ = true;
    ++under_way_;
    call_.Finish(*final_status_, &finish_tag_);
  }
}

void MirrorStream::Release() {
  {
    absl::MutexLock lock(&mutex_);
    if (--under_way_ > 0) return;
  }
  MirrorService& service = service_;
  service.RemoveSession(this);
  delete this;
  service.StreamGone();
}

}  // namespace h5mirror::server
