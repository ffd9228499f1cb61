#include "server/calls/stream_call.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/status.h"
#include "server/calls/fair_pool.h"

namespace h5mirror::server {
namespace {

// A turn that finds all in memory makes a few messages, so that it does not change threads.
constexpr absl::Duration kTurn = absl::Milliseconds(5);

// A worker makes the next message while one is on its way.
class StreamCall final : public StreamReactor {
 public:
  StreamCall(const ServiceEnvironment& environment, const grpc::CallbackServerContext& context,
             const char* method)
      : environment_(environment),
        context_(context),
        method_(method),
        started_(environment.clock.Monotonic()) {}

  void Begin(Callers::Ticket ticket, std::unique_ptr<StreamSource> source) {
    ticket_ = std::move(ticket);
    source_ = std::move(source);
    MakeSoon();
  }
  void Refuse(const absl::Status& status) {
    NoteRefused(environment_, context_, method_, started_, status);
    Finish(rpc::ToGrpc(status));
  }

  void OnWriteDone(bool ok) override {
    if (!ok) is_cancelled_ = true;
    const bool is_revoked = !ticket_.revoked().ok();
    Step step;
    {
      absl::MutexLock lock(&mutex_);
      is_writing_ = false;
      if (!next_) return;  // The thread that makes the next step sends it.
      step = std::move(*next_);
      next_.reset();
      is_writing_ = !is_revoked;
    }
    // A message made before the token was removed is not sent: a worker ends the call.
    if (is_revoked || Send(std::move(step))) MakeSoon();
  }
  void OnCancel() override { is_cancelled_ = true; }
  void OnDone() override { delete this; }

 private:
  // A message, the end, or both; or nothing yet.
  struct Step {
    std::optional<grpc::ByteBuffer> message = std::nullopt;
    std::optional<absl::Status> end = std::nullopt;

    bool is_nothing() const { return !message && !end; }
  };

  void MakeSoon() {
    environment_.workers->Schedule(ticket_.key(), [this] { MakeOn(); });
  }

  // Until a message is on its way and the next one is there, or the turn is over and another call
  // waits for its own.
  void MakeOn() {
    const absl::Duration turn_end = environment_.clock.Monotonic() + kTurn;
    const auto is_over = [&] { return environment_.clock.Monotonic() >= turn_end; };
    do {
      Step step = Make();
      if (step.is_nothing()) continue;
      {
        absl::MutexLock lock(&mutex_);
        if (is_writing_) {
          next_ = std::move(step);
          return;
        }
        is_writing_ = true;
      }
      if (!Send(std::move(step))) return;
    } while (!is_over() || !environment_.workers->HasWaiting());
    MakeSoon();
  }

  // Called by the thread that has set `is_writing_`. False: the call has ended, and may be gone.
  bool Send(Step step) {
    if (step.message) {
      sent_bytes_ += step.message->Length();
      message_ = *std::move(step.message);
    }
    if (!step.end) {
      StartWrite(&message_);
      return true;
    }
    NoteCallDone(environment_, context_, method_, started_, *step.end);
    ticket_.Done(*step.end, {.sent = sent_bytes_, .received = 0});
    const grpc::Status status = rpc::ToGrpc(*step.end);
    if (step.message) {
      StartWriteAndFinish(&message_, grpc::WriteOptions(), status);
    } else {
      Finish(status);
    }
    return false;
  }

  Step Make() {
    if (const absl::Status revoked = ticket_.revoked(); !revoked.ok()) return Ended(revoked);
    if (is_cancelled_) return Ended(absl::CancelledError("the caller has gone"));
    grpc::ByteBuffer message;
    const uint64_t part_bytes = environment_.callers->ReadPartBytes();
    const auto next = source_->Make({part_bytes, is_cancelled_}, message);
    if (!next.ok()) return Ended(next.status());
    switch (*next) {
      case StreamSource::Next::kNothingYet:
        return {};
      case StreamSource::Next::kEnd:
        return Ended(absl::OkStatus());
      case StreamSource::Next::kLastMessage: {
        Step step = Ended(absl::OkStatus());
        step.message = std::move(message);
        return step;
      }
      case StreamSource::Next::kMessage:
        break;
    }
    return {.message = std::move(message)};
  }

  // Ends the making of messages; the last one may still be in flight. Destroying the source may
  // take a while, so no thread of gRPC does it.
  Step Ended(absl::Status status) {
    source_.reset();
    return {.end = std::move(status)};
  }

  const ServiceEnvironment& environment_;
  const grpc::CallbackServerContext& context_;
  const char* const method_;
  const absl::Duration started_;
  std::atomic<bool> is_cancelled_ = false;
  Callers::Ticket ticket_;  // set before anything else happens

  std::unique_ptr<StreamSource> source_;  // owned by the thread that makes steps

  absl::Mutex mutex_;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Step> next_ ABSL_GUARDED_BY(mutex_);  // that waits for the one on its way
  grpc::ByteBuffer message_;                          // on its way
  uint64_t sent_bytes_ = 0;                           // of the thread that sends
};

}  // namespace

StreamReactor* StartStream(const ServiceEnvironment& environment,
                           const grpc::CallbackServerContext& context, const char* method,
                           Right right, uint64_t request_bytes, const MakeStreamSource& make) {
  auto* const call = new StreamCall(environment, context, method);
  absl::StatusOr<Callers::Ticket> ticket = AdmitCall(environment, context, method, AnyFile(right),
                                                     CallUse::kRead, ReadCost(request_bytes));
  if (!ticket.ok()) {
    call->Refuse(ticket.status());
    return call;
  }
  auto source = make(*ticket);
  if (!source.ok()) {
    ticket->Done(source.status());
    call->Refuse(source.status());
  } else {
    call->Begin(*std::move(ticket), *std::move(source));
  }
  return call;
}

}  // namespace h5mirror::server
