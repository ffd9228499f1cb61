// WaitForCut: an answer as soon as there is a newer cut.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/status.h"
#include "server/live/snapshots_service.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kTimeoutMax = absl::Hours(1);

}  // namespace

// One call. gRPC destroys it when it is done with it; what the board or a worker may still hold of
// it is its state.
class SnapshotsService::WaitCall final : public grpc::ServerUnaryReactor {
 public:
  WaitCall(SnapshotsService& service, const v1::WaitForCutRequest& request,
           v1::WaitForCutResponse* response)
      : state_(std::make_shared<State>(service, request, response)) {
    state_->call = this;
  }

  // `late`: what a worker must check first.
  void Begin(Callers::Ticket ticket, absl::Duration timeout, LateCheck late) {
    ticket_ = std::move(ticket);
    ticket_.OnRevoke([state = state_](const absl::Status& why) { State::Cancel(state, why); });
    state_->until = state_->started + timeout;
    state_->late = std::move(late);
    if (state_->late.before == nullptr) return State::LookSoon(state_);
    state_->service.workers_.Schedule([state = state_] {
      const absl::Status may = state->late.before();
      may.ok() ? State::Look(state) : State::Answer(state, may);
    });
  }
  void Refuse(const absl::Status& status) { State::Answer(state_, status); }

  void OnCancel() override { State::Cancel(state_, absl::CancelledError("the caller has gone")); }
  void OnDone() override { delete this; }

 private:
  struct State {
    State(SnapshotsService& service_in, const v1::WaitForCutRequest& request,
          v1::WaitForCutResponse* response_in)
        : service(service_in),
          name(request.name()),
          after_cut(request.after_cut()),
          or_no_writer(request.or_no_writer()),
          response(response_in),
          started(service.environment_.clock.Monotonic()),
          until(started) {}

    // Finishes the call, unless that has been done.
    static void Answer(const std::shared_ptr<State>& self, const absl::Status& status,
                       const v1::WaitForCutResponse* answer = nullptr) {
      WaitCall* call;
      {
        absl::MutexLock lock(&self->mutex);
        call = std::exchange(self->call, nullptr);
        if (call != nullptr && answer != nullptr) *self->response = *answer;
      }
      if (call == nullptr) return;
      const ServiceEnvironment& environment = self->service.environment_;
      environment.metrics.RequestDone("WaitForCut", status.code(),
                                      environment.clock.Monotonic() - self->started);
      call->ticket_.Done(status);
      call->Finish(rpc::ToGrpc(status));
    }

    static void Cancel(const std::shared_ptr<State>& self, const absl::Status& why) {
      const uint64_t id = [&] {
        absl::MutexLock lock(&self->mutex);
        return self->wait_id;
      }();
      if (id != 0) self->service.board_.Cancel(self->name, id);
      Answer(self, why);
    }

    static void LookSoon(const std::shared_ptr<State>& self) {
      self->service.workers_.Schedule([self] { Look(self); });
    }

    // Answers if there is a newer cut or no time left; else waits.
    static void Look(const std::shared_ptr<State>& self) {
      SnapshotsService& service = self->service;
      const absl::Duration left = self->until - service.environment_.clock.Monotonic();
      // First: a cut that comes after it was looked for is told of.
      const uint64_t id = service.board_.Wait(
          self->name, std::max(left, absl::ZeroDuration()), [self](CutBoard::Why why) {
            if (why == CutBoard::Why::kStopped) {
              return Answer(self, absl::UnavailableError("the server is stopping"));
            }
            LookSoon(self);
          });
      {
        absl::MutexLock lock(&self->mutex);
        self->wait_id = id;
        if (self->call == nullptr) {  // Cancelled.
          service.board_.Cancel(self->name, id);
          return;
        }
      }
      v1::WaitForCutResponse answer;
      absl::Status status = service.Describe(self->name, answer);
      if (self->late.after != nullptr) status.Update(self->late.after());
      const bool is_news =
          answer.cut() > self->after_cut || (self->or_no_writer && !answer.has_writer());
      if (status.ok() && !is_news && left > absl::ZeroDuration()) return;
      // Should the board have told of a cut meanwhile, that look finds nobody to answer.
      service.board_.Cancel(self->name, id);
      Answer(self, status, &answer);
    }

    SnapshotsService& service;
    const std::string name;
    const int64_t after_cut;
    const bool or_no_writer;
    v1::WaitForCutResponse* const response;
    const absl::Duration started;
    LateCheck late;  // set before anything else happens, as `until`
    absl::Duration until;
    absl::Mutex mutex;
    WaitCall* call ABSL_GUARDED_BY(mutex) = nullptr;  // null: answered
    uint64_t wait_id ABSL_GUARDED_BY(mutex) = 0;
  };

  const std::shared_ptr<State> state_;
  Callers::Ticket ticket_;
};

absl::Status SnapshotsService::Describe(const std::string& name, v1::WaitForCutResponse& response) {
  H5M_ASSIGN_OR_RETURN(const auto file, OpenFile(name));
  // First: what the writer's last cut was is asked after it has gone.
  response.set_has_writer(environment_.leases.HolderOf(name).has_value());
  *response.mutable_answer_time() = ToProto(environment_.clock.Now());
  const auto newest = file->PinNewestCut();
  if (absl::IsNotFound(newest.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(newest.status());
  response.set_file_id(file->file_id().data(), file->file_id().size());
  const store::CutInfo& info = (*newest)->info();
  response.set_cut(info.cut);
  response.set_size_bytes(static_cast<int64_t>(info.size_bytes));
  *response.mutable_server_time() = ToProto(info.time);
  response.set_written_bytes(info.written_bytes);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* SnapshotsService::WaitForCut(grpc::CallbackServerContext* context,
                                                       const v1::WaitForCutRequest* request,
                                                       v1::WaitForCutResponse* response) {
  auto* const call = new WaitCall(*this, *request, response);
  LateCheck late;
  auto ticket = AdmitWithoutWait(environment_, *context, "WaitForCut",
                                 {Right::kRead, request->name()}, CallUse::kWait, &late);
  absl::Status checked = ticket.status();
  checked.Update(store::CheckName(request->name()));
  if (checked.ok()) {
    call->Begin(*std::move(ticket),
                std::clamp(FromProto(request->timeout()), absl::ZeroDuration(), kTimeoutMax),
                std::move(late));
  } else {
    if (ticket.ok()) ticket->Done(checked);
    call->Refuse(checked);
  }
  return call;
}

}  // namespace h5mirror::server
