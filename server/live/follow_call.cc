#include "server/live/follow_call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "grpcpp/alarm.h"
#include "rpc/status.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kSleepMax = absl::Milliseconds(250);
constexpr absl::Duration kGapMax = absl::Hours(1);

}  // namespace

struct FollowCall::State {
  // The next step, and the thread or object that takes it.
  enum class Phase : uint8_t {
    kAdvancing,  // a worker
    kWriting,    // OnWriteDone()
    kWaiting,    // the publisher
    kSleeping,   // the alarm, until the caller's own tick has passed
    kDone,
  };
  using Self = std::shared_ptr<State>;

  State(FollowEnvironment environment_in, v1::FollowFileRequest request_in)
      : environment(environment_in),
        request(std::move(request_in)),
        known_cut(request.after_cut()),
        known_file_id(request.file_id()),
        pin_id(environment.table.NewCall()),
        gap(std::clamp(FromProto(request.tick()), absl::ZeroDuration(), kGapMax)),
        started(environment.service.clock.Monotonic()) {}

  static void Schedule(const Self& self) {
    self->environment.workers.Schedule([self] { Advance(self); });
  }

  // Goes on until there is something to wait for.
  static void Advance(const Self& self) {
    for (;;) {
      if (const absl::Status over = self->WhyOver(); !over.ok()) return self->Finish(over);
      if (self->messages == nullptr ? !Begin(self) : !self->Send()) return;
    }
  }

  // Takes up the newest cut; false: there is nothing to be sent now.
  static bool Begin(const Self& self) {
    if (self->follower == nullptr) {
      if (const absl::Status followed = self->Follow(); !followed.ok()) {
        return self->Finish(followed), false;
      }
    }
    const auto newest = self->environment.publisher.Newest(self->request.name());
    if (!newest.ok()) return self->Finish(newest.status()), false;
    // Another file has the name, and no cut yet.
    if (*newest == nullptr) self->known.reset();
    if (*newest == self->known) return AwaitNews(self), false;
    const absl::Duration early =
        self->last_time + self->gap - self->environment.service.clock.Monotonic();
    if (early > absl::ZeroDuration()) return Sleep(self, early), false;
    self->last_time = self->environment.service.clock.Monotonic();
    self->publication = *newest;
    self->known.reset();  // A follower that is slow with this cut holds no other.
    if (!self->request.reader_id().empty()) {
      self->environment.table.PinInCall(self->publication->file(), self->publication->snapshot(),
                                        self->request.reader_id(), self->pin_id);
    }
    self->messages = self->publication->MessagesFrom(self->known_cut, self->known_file_id,
                                                     self->request.metadata_bytes_max());
    self->next_message = 0;
    return true;
  }

  absl::Status Follow() {
    H5M_RETURN_IF_ERROR(CheckLate());
    H5M_ASSIGN_OR_RETURN(follower, environment.publisher.Follow(request.name()));
    return late.after == nullptr ? absl::OkStatus() : late.after();
  }

  // Makes the checks that were left, then tells the audit log that the call has begun. Nothing else
  // ends the call meanwhile.
  absl::Status CheckLate() {
    if (late.before == nullptr) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(late.before());
    FollowCall* begun;
    {
      absl::MutexLock lock(&mutex);
      begun = call;
    }
    if (begun != nullptr) begun->ticket_.Began();
    return absl::OkStatus();
  }

  // Sends one message; false: it is on its way, or the call has ended.
  bool Send() {
    absl::StatusOr<std::optional<grpc::ByteBuffer>> message = messages->Get(next_message);
    if (absl::IsOutOfRange(message.status())) {
      // The base cut could not be held that long, so the next publication begins anew.
      messages.reset();
      known = std::move(publication);
      environment.publisher.OnChange(request.name());
      return true;
    }
    if (!message.ok()) return Finish(message.status()), false;
    if (!message->has_value()) {
      messages.reset();
      known_cut = publication->cut();
      known_file_id = publication->file_id();
      known = std::move(publication);
      return true;
    }
    ++next_message;
    buffer = std::move(**message);
    sent_bytes += buffer.Length();
    FollowCall* writer;
    {
      absl::MutexLock lock(&mutex);
      phase = Phase::kWriting;
      writer = call;
    }
    writer->StartWrite(&buffer);
    return false;
  }

  static void AwaitNews(const Self& self) {
    {
      absl::MutexLock lock(&self->mutex);
      self->phase = Phase::kWaiting;
    }
    Publisher& publisher = self->environment.publisher;
    const std::string& name = self->request.name();
    // From Wait() on another worker may go on with the call.
    const Publisher::PublicationPtr known = self->known;
    const uint64_t id = publisher.Wait(name, known, [self] {
      {
        absl::MutexLock lock(&self->mutex);
        self->phase = Phase::kAdvancing;
      }
      Schedule(self);
    });
    // First waited, then looked: a writer that goes now is told of.
    const bool is_over = self->request.until_no_writer() && publisher.IsAtRest(name, known);
    absl::Status why_over;
    {
      absl::MutexLock lock(&self->mutex);
      self->wait_id = std::max(self->wait_id, id);
      why_over = self->why_over;
    }
    if (!is_over && why_over.ok()) return;
    if (!publisher.Cancel(name, id)) return;  // The waiter goes on.
    self->Finish(why_over);
  }

  static void Sleep(const Self& self, absl::Duration time) {
    absl::MutexLock lock(&self->mutex);
    self->phase = Phase::kSleeping;
    self->alarm = std::make_unique<grpc::Alarm>();
    // In parts: a server that stops is noticed.
    const absl::Time until = absl::Now() + std::min(time, kSleepMax);
    self->alarm->Set(absl::ToChronoTime(until), [self](bool) {
      {
        absl::MutexLock lock(&self->mutex);
        self->phase = Phase::kAdvancing;
      }
      Schedule(self);
    });
  }

  // The call is to end with `why`, unless it was to end before.
  void EndSoon(const absl::Status& why) {
    uint64_t id;
    absl::Status first;
    {
      absl::MutexLock lock(&mutex);
      why_over.Update(why);
      first = why_over;
      if (phase == Phase::kSleeping) return alarm->Cancel();
      if (phase != Phase::kWaiting) return;
      id = wait_id;
    }
    if (id != 0 && environment.publisher.Cancel(request.name(), id)) Finish(first);
  }

  absl::Status WhyOver() {
    absl::MutexLock lock(&mutex);
    return why_over;
  }

  void Finish(const absl::Status& status) {
    FollowCall* finished;
    std::unique_ptr<grpc::Alarm> over;
    {
      absl::MutexLock lock(&mutex);
      phase = Phase::kDone;
      finished = std::exchange(call, nullptr);
      over = std::move(alarm);
    }
    if (finished == nullptr) return;
    messages.reset();
    publication.reset();
    known.reset();
    follower.reset();
    environment.table.EndCall(request.name(), pin_id);
    environment.service.metrics.RequestDone("FollowFile", status.code(),
                                            environment.service.clock.Monotonic() - started);
    finished->ticket_.Done(status, {.sent = sent_bytes, .received = 0});
    finished->Finish(rpc::ToGrpc(status));
  }

  const FollowEnvironment environment;
  const v1::FollowFileRequest request;

  // Owned by the thread that advances the call.
  LateCheck late;  // set before anything else happens
  store::CutNumber known_cut;
  std::string known_file_id;
  const SnapshotTable::CallId pin_id;
  const absl::Duration gap;
  const absl::Duration started;
  absl::Duration last_time = -absl::InfiniteDuration();
  std::unique_ptr<Publisher::Follower> follower;
  Publisher::PublicationPtr publication;  // being sent
  Publisher::PublicationPtr known;        // the last one; null: none
  std::shared_ptr<CutMessages> messages;  // null: nothing is being sent
  size_t next_message = 0;
  grpc::ByteBuffer buffer;
  uint64_t sent_bytes = 0;

  absl::Mutex mutex;
  FollowCall* call ABSL_GUARDED_BY(mutex) = nullptr;  // null: finished
  Phase phase ABSL_GUARDED_BY(mutex) = Phase::kAdvancing;
  absl::Status why_over ABSL_GUARDED_BY(mutex);  // OK: it is to go on
  uint64_t wait_id ABSL_GUARDED_BY(mutex) = 0;
  std::unique_ptr<grpc::Alarm> alarm ABSL_GUARDED_BY(mutex);  // holds this state until it is reset
};

FollowCall::FollowCall(FollowEnvironment environment, v1::FollowFileRequest request)
    : state_(std::make_shared<State>(environment, std::move(request))) {
  absl::MutexLock lock(&state_->mutex);
  state_->call = this;
}

FollowCall::~FollowCall() = default;

void FollowCall::Begin(Callers::Ticket ticket, LateCheck late) {
  ticket_ = std::move(ticket);
  state_->late = std::move(late);
  ticket_.OnRevoke([state = state_](const absl::Status& why) { state->EndSoon(why); });
  State::Schedule(state_);
}

void FollowCall::Refuse(const absl::Status& status) { state_->Finish(status); }

void FollowCall::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->phase = State::Phase::kAdvancing;
    state_->buffer.Clear();
    if (!ok) state_->why_over.Update(absl::CancelledError("the caller has gone"));
  }
  State::Schedule(state_);
}

void FollowCall::OnCancel() { state_->EndSoon(absl::CancelledError("the caller has gone")); }

}  // namespace h5mirror::server
