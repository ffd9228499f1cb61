#include "rpc/mirror_stream.h"

#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "rpc/status.h"
#include "rpc/texts.h"

namespace h5mirror::rpc {
namespace {

constexpr const char* kMirrorFileMethod = "/h5mirror.v1.Mirror/MirrorFile";

absl::StatusOr<v1::MirrorFileResponse> ParseResponse(grpc::ByteBuffer& message) {
  grpc::ProtoBufferReader reader(&message);
  v1::MirrorFileResponse response;
  if (!reader.status().ok() || !response.ParseFromZeroCopyStream(&reader)) {
    return absl::InternalError("the server's answer is no h5mirror.v1.MirrorFileResponse");
  }
  return response;
}

// Each operation is started and then waited for, so that one completion queue and one tag do.
class Stream final : public MirrorStream {
 public:
  Stream(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
         absl::Duration silence_max)
      : options_(options), silence_max_(silence_max), stub_(channel) {
    Authorize(options_, context_);
    call_ = stub_.PrepareCall(&context_, kMirrorFileMethod, &queue_);
  }

  ~Stream() override {
    if (started_ && !status_) {
      context_.TryCancel();
      ReadStatus().IgnoreError();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  absl::Status Start() {
    started_ = true;
    call_->StartCall(this);
    return Done() ? absl::OkStatus() : Ended();
  }

  absl::Status Send(const v1::MirrorFileRequest& request) override {
    H5M_RETURN_IF_ERROR(CheckTexts(request));
    return SendMessage(EncodeRequest(request));
  }

  absl::Status SendWrites(absl::Span<const Extent> extents, std::optional<uint32_t> crc32c,
                          absl::Span<const grpc::Slice> data) override {
    return SendMessage(EncodeWrites(extents, crc32c, data));
  }

  absl::StatusOr<v1::MirrorFileResponse> Receive() override {
    if (unread_.empty() && !ReadOne()) return Ended();
    grpc::ByteBuffer message = std::move(unread_.front());
    unread_.pop_front();
    absl::StatusOr<v1::MirrorFileResponse> response = ParseResponse(message);
    if (response.ok() && response->has_opened()) {  // Programs may print it as it is.
      response->mutable_opened()->set_state(Printable(response->opened().state()));
    }
    if (response.ok()) return response;
    return NameServer(options_, response.status());
  }

  absl::Status Finish() override {
    if (!status_ && !half_closed_) {
      half_closed_ = true;
      call_->WritesDone(this);
      Done();
    }
    return ReadStatus();
  }

 private:
  // Waits for the operation that was just started, and cancels the stream where that takes too
  // long; the operation then ends soon.
  bool Done() {
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + silence_max_));
    if (next != grpc::CompletionQueue::TIMEOUT)
      return next == grpc::CompletionQueue::GOT_EVENT && ok;
    was_silent_ = true;
    context_.TryCancel();
    return queue_.Next(&tag, &ok) && ok;
  }

  // Why the stream ended.
  absl::Status Why(const grpc::Status& status) const {
    if (!was_silent_ || status.error_code() != grpc::StatusCode::CANCELLED) {
      return FromServer(status);
    }
    return absl::DeadlineExceededError(
        StrCat("connected, but it neither answered nor took anything for ",
               absl::FormatDuration(silence_max_), ": its disk may hang"));
  }

  absl::Status SendMessage(const grpc::ByteBuffer& message) {
    if (half_closed_) return absl::FailedPreconditionError("send on a finished mirror stream");
    if (status_) return Ended();
    call_->Write(message, this);
    return Done() ? absl::OkStatus() : Ended();
  }

  bool ReadOne() {
    if (status_) return false;
    grpc::ByteBuffer message;
    call_->Read(&message, this);
    if (!Done()) return false;
    unread_.push_back(std::move(message));
    return true;
  }

  // gRPC gives the status only after the last message was read; they are kept for Receive(),
  // since one of them may tell why the stream ended.
  absl::Status ReadStatus() {
    if (!status_) {
      while (ReadOne()) {
      }
      grpc::Status status;
      call_->Finish(&status, this);
      Done();
      status_ = NameServer(options_, Why(status));
    }
    return *status_;
  }

  // The status of a stream on which nothing can be sent or received any more; never OK.
  absl::Status Ended() {
    absl::Status status = ReadStatus();
    if (!status.ok()) return status;
    return NameServer(options_, absl::OutOfRangeError("the mirror stream has ended"));
  }

  const ClientOptions options_;
  const absl::Duration silence_max_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool started_ = false;
  bool half_closed_ = false;
  bool was_silent_ = false;
  std::deque<grpc::ByteBuffer> unread_;
  std::optional<absl::Status> status_;  // set once the stream has ended
};

}  // namespace

absl::Status NameServer(const ClientOptions& options, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status named(status.code(), StrCat(options.server, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

absl::StatusOr<std::unique_ptr<MirrorStream>> StartMirrorStream(
    const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
    absl::Duration silence_max) {
  auto stream = std::make_unique<Stream>(channel, options, silence_max);
  absl::Status status = stream->Start();
  if (!status.ok()) return status;
  return stream;
}

}  // namespace h5mirror::rpc
