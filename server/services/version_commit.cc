// Versions::CommitVersion: a version of the file as it is, on request. A call that waits for the
// writer's next cut holds no thread.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/status.h"
#include "server/calls/fair_pool.h"
#include "server/history/history_pruner.h"
#include "server/services/versions_service.h"
#include "server/state/convert.h"
#include "server/state/cut_board.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kWaitDefault = absl::Seconds(30);
constexpr absl::Duration kWaitMax = absl::Hours(1);
// A cut that took the request becomes durable as fast as the disk is, or fails.
constexpr absl::Duration kDurableWaitMax = absl::Minutes(5);

absl::StatusOr<absl::Duration> WaitOf(const v1::CommitVersionRequest& request) {
  if (!request.has_wait()) return kWaitDefault;
  const absl::Duration wait =
      absl::Seconds(request.wait().seconds()) + absl::Nanoseconds(request.wait().nanos());
  if (wait >= absl::ZeroDuration() && wait <= kWaitMax) return wait;
  return absl::InvalidArgumentError(
      StrCat("wait ", request.wait().seconds(), " s is not in the range from 0 to 1 hour"));
}

}  // namespace

// One call. gRPC destroys it at its end. The boards or a worker may hold its state for longer.
//
//   (worker) Begin --nobody writes--> Keep --> answer
//                  --a writer--> posted --a cut took it, durable--> answer
//                                       --time is over, cancelled, ...--> taken back --> answer
//                                       --the writer went--> taken back --> Keep --> answer
class VersionsService::CommitCall final : public grpc::ServerUnaryReactor {
 public:
  CommitCall(VersionsService& service, const grpc::CallbackServerContext& context,
             const v1::CommitVersionRequest& request, v1::CommitVersionResponse* response);

  // `late`: what a worker must check first.
  void Begin(Callers::Ticket ticket, LateCheck late);
  void Refuse(const absl::Status& status);

  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  struct State;

  const std::shared_ptr<State> state_;
  Callers::Ticket ticket_;
};

struct VersionsService::CommitCall::State {
  using Self = std::shared_ptr<State>;

  State(VersionsService& service_in, const grpc::CallbackServerContext& context_in,
        const v1::CommitVersionRequest& request_in, v1::CommitVersionResponse* response_in)
      : service(service_in),
        environment(service_in.environment_),
        context(context_in),
        request(request_in),
        response(response_in),
        started(environment.clock.Monotonic()) {}

  // From any thread.
  static void LookSoon(const Self& self) {
    {
      absl::MutexLock lock(&self->mutex);
      if (self->call == nullptr) return;
      if (std::exchange(self->is_looking, true)) {
        self->must_look_again = true;
        return;
      }
    }
    self->environment.workers->Schedule(self->key, [self] { LookOn(self); });
  }

  // Of a worker, one at a time.
  static void LookOn(const Self& self) {
    do {
      if (const std::optional<absl::Status> end = Look(self)) return self->Answer(*end);
    } while (self->MustLookAgain());
  }

  // The status that ends the call; nullopt: something will call LookSoon().
  static std::optional<absl::Status> Look(const Self& self) {
    if (self->file == nullptr) {
      if (absl::Status status = self->OpenChecked(); !status.ok()) return status;
      if (self->is_answered) return absl::OkStatus();
      if (!self->HasWriter()) return self->MakeVersion();
      self->commit = self->environment.commits.Post(self->request.name(), self->principal.name,
                                                    self->request.comment(), self->request_id);
      self->commit->SetOnDone([self] { LookSoon(self); });
    }
    // First waited, then looked: a writer that goes now is told of.
    self->AwaitNews(self);
    if (const auto result = self->commit->result()) return self->AnswerOf(*result);
    if (self->is_taken) return self->WhyNotDurable();
    const std::optional<absl::Status> given_up = self->GivesUp();
    if (!given_up.has_value()) return std::nullopt;
    if (self->environment.commits.TakeBack(self->request.name(), self->commit)) {
      return given_up->ok() ? self->MakeVersion() : *given_up;
    }
    // A cut has it. It is a version now, or it fails.
    self->is_taken = true;
    self->until = self->environment.clock.Monotonic() + kDurableWaitMax;
    self->AwaitNews(self);
    if (const auto result = self->commit->result()) return self->AnswerOf(*result);
    return std::nullopt;
  }

  bool MustLookAgain() {
    absl::MutexLock lock(&mutex);
    return is_looking = std::exchange(must_look_again, false);
  }

  absl::Status Open() {
    const auto id = FromByteString(request.request_id());
    if (!id.ok()) return absl::InvalidArgumentError("request_id is not 16 bytes");
    request_id = *id;
    H5M_RETURN_IF_ERROR(CheckWriter(request.writer()));
    H5M_RETURN_IF_ERROR(CheckComment(request.comment()));
    H5M_ASSIGN_OR_RETURN(const absl::Duration wait_wanted, WaitOf(request));
    wait = wait_wanted;
    until = started + wait;
    H5M_ASSIGN_OR_RETURN(file, service.Open(request.name()));
    if (auto done = file->FindRequest(request_id); done.ok()) {
      *answer.mutable_version() = ToProto(*done);
      is_answered = true;
    }
    return absl::OkStatus();
  }

  absl::Status OpenChecked() {
    if (late.before != nullptr) H5M_RETURN_IF_ERROR(late.before());
    H5M_RETURN_IF_ERROR(Open());
    return late.after == nullptr ? absl::OkStatus() : late.after();
  }

  bool HasWriter() const { return environment.leases.HolderOf(request.name()).has_value(); }

  // Until a cut of the file, its writer's end, the end of the time, or of the server.
  void AwaitNews(const Self& self) {
    uint64_t before;
    {
      absl::MutexLock lock(&mutex);
      before = std::exchange(wait_id, 0);
      if (is_stopped) return;  // The board waits for nothing any more.
    }
    if (before != 0) environment.cuts->Cancel(request.name(), before);
    const absl::Duration left = until - environment.clock.Monotonic();
    if (left <= absl::ZeroDuration()) return;
    const uint64_t id = environment.cuts->Wait(request.name(), left, [self](CutBoard::Why why) {
      if (why == CutBoard::Why::kStopped) {
        absl::MutexLock lock(&self->mutex);
        self->is_stopped = true;
      }
      LookSoon(self);
    });
    absl::MutexLock lock(&mutex);
    wait_id = id;
  }

  // OK: there is no writer any more. nullopt: go on waiting.
  std::optional<absl::Status> GivesUp() {
    {
      absl::MutexLock lock(&mutex);
      if (!why_over.ok()) return why_over;
      if (is_stopped) return absl::UnavailableError("the server is stopping; safe to retry");
    }
    const auto holder = environment.leases.HolderOf(request.name());
    if (!holder.has_value()) return absl::OkStatus();
    if (environment.clock.Monotonic() < until) return std::nullopt;
    return absl::DeadlineExceededError(StrCat(
        request.name(), " is being written by ", holder->Describe(), ", which made no cut in ",
        HumanDuration(wait),
        ": no version was made. Its next H5Fflush or close is one; wait longer, or tag a version"));
  }

  // A cut has the request. nullopt: go on waiting.
  std::optional<absl::Status> WhyNotDurable() {
    {
      absl::MutexLock lock(&mutex);
      if (!why_over.ok()) return why_over;
    }
    if (environment.clock.Monotonic() < until) return std::nullopt;
    return absl::DeadlineExceededError(StrCat(
        request.name(), ": the cut did not become durable; it will be a version if it does"));
  }

  absl::Status AnswerOf(const absl::StatusOr<store::DurableCut>& cut) {
    H5M_RETURN_IF_ERROR(cut.status());
    if (cut->stopped) {
      return absl::ResourceExhaustedError(StrCat(request.name(),
                                                 ": no version was made, its history is ",
                                                 environment.pruner.NoticeOf(request.name())));
    }
    H5M_ASSIGN_OR_RETURN(const store::VersionInfo version, file->GetVersion(cut->version));
    *answer.mutable_version() = ToProto(version);
    answer.set_unchanged(cut->unchanged);
    return absl::OkStatus();
  }

  absl::Status MakeVersion() {
    H5M_ASSIGN_OR_RETURN(const store::MadeVersion kept,
                         file->MakeVersion(MakeProvenance(request.writer(), principal.name,
                                                          request.comment(), absl::InfinitePast()),
                                           request_id));
    environment.pruner.Grew(request.name());
    *answer.mutable_version() = ToProto(kept.version);
    answer.set_unchanged(kept.unchanged);
    return absl::OkStatus();
  }

  static void EndSoon(const Self& self, const absl::Status& why) {
    {
      absl::MutexLock lock(&self->mutex);
      self->why_over.Update(why);
    }
    LookSoon(self);
  }

  void Answer(const absl::Status& status) {
    CommitCall* ended;
    uint64_t id;
    {
      absl::MutexLock lock(&mutex);
      ended = std::exchange(call, nullptr);
      id = std::exchange(wait_id, 0);
    }
    if (id != 0) environment.cuts->Cancel(request.name(), id);
    if (commit != nullptr) commit->SetOnDone(nullptr);
    commit.reset();
    file.reset();
    if (status.ok()) *response = answer;
    NoteCallDone(environment, context, "CommitVersion", started, status);
    ended->ticket_.Done(status);
    ended->Finish(rpc::ToGrpc(status));
  }

  VersionsService& service;
  const ServiceEnvironment& environment;
  const grpc::CallbackServerContext& context;  // until the answer, as `response`
  const v1::CommitVersionRequest request;
  v1::CommitVersionResponse* const response;
  const absl::Duration started;
  Principal principal;  // set before anything else happens, as `key` and `late`
  std::string key;
  LateCheck late;

  // Owned by the thread that looks.
  Bytes16 request_id{};
  absl::Duration wait;
  absl::Duration until;
  std::shared_ptr<store::File> file;  // null: not begun
  std::shared_ptr<PendingCommit> commit;
  bool is_taken = false;  // by a cut
  bool is_answered = false;
  v1::CommitVersionResponse answer;

  absl::Mutex mutex;
  CommitCall* call ABSL_GUARDED_BY(mutex) = nullptr;  // null: answered
  bool is_looking ABSL_GUARDED_BY(mutex) = false;
  bool must_look_again ABSL_GUARDED_BY(mutex) = false;
  bool is_stopped ABSL_GUARDED_BY(mutex) = false;
  absl::Status why_over ABSL_GUARDED_BY(mutex);
  uint64_t wait_id ABSL_GUARDED_BY(mutex) = 0;
};

VersionsService::CommitCall::CommitCall(VersionsService& service,
                                        const grpc::CallbackServerContext& context,
                                        const v1::CommitVersionRequest& request,
                                        v1::CommitVersionResponse* response)
    : state_(std::make_shared<State>(service, context, request, response)) {
  absl::MutexLock lock(&state_->mutex);
  state_->call = this;
}

void VersionsService::CommitCall::Begin(Callers::Ticket ticket, LateCheck late) {
  ticket_ = std::move(ticket);
  state_->late = std::move(late);
  state_->principal = ticket_.principal();
  state_->key = ticket_.key();
  ticket_.OnRevoke([state = state_](const absl::Status& why) { State::EndSoon(state, why); });
  State::LookSoon(state_);
}

void VersionsService::CommitCall::Refuse(const absl::Status& status) {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->call = nullptr;
  }
  Finish(rpc::ToGrpc(status));
}

void VersionsService::CommitCall::OnCancel() {
  State::EndSoon(state_, absl::CancelledError("the caller has gone"));
}

grpc::ServerUnaryReactor* VersionsService::CommitVersion(grpc::CallbackServerContext* context,
                                                         const v1::CommitVersionRequest* request,
                                                         v1::CommitVersionResponse* response) {
  const absl::Duration start = environment_.clock.Monotonic();
  auto* const call = new CommitCall(*this, *context, *request, response);
  LateCheck late;
  auto ticket = AdmitWithoutWait(environment_, *context, "CommitVersion",
                                 {Right::kWrite, request->name()}, CallUse::kWait, &late);
  if (ticket.ok()) {
    call->Begin(*std::move(ticket), std::move(late));
  } else {
    NoteRefused(environment_, *context, "CommitVersion", start, ticket.status());
    call->Refuse(ticket.status());
  }
  return call;
}

}  // namespace h5mirror::server
