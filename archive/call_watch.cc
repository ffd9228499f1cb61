#include "archive/call_watch.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "archive/retry.h"
#include "base/human.h"
#include "base/strings.h"

namespace h5mirror::archive {
namespace {

constexpr absl::Duration kPlaceLook = absl::Milliseconds(5);

absl::Time Now() { return RetryClock::Steady().now(); }

// Whether a call that ended with this status shows that the archive works.
bool IsAnswer(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

bool IsAbsence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

void CallWatch::Succeed(Kind kind) {
  counts_.last_success = absl::Now();
  Of(kind) = {};
  Of(Kind::kReach) = {};
  // Days may pass without a list or a read.
  for (const Kind other : {Kind::kRead, Kind::kList}) {
    if (Of(other).is_absence) Of(other) = {};
  }
}

void CallWatch::Fail(Kind kind, const absl::Status& status) {
  if (stopped_) return;
  ++counts_.failed_calls;
  Failing& failing = Of(kind);
  if (failing.error.empty()) failing.since = absl::Now();
  failing.error = ToStd(status.message());
  failing.is_absence = IsAbsence(status);
}

void CallWatch::BeSilent(absl::Time now, const absl::Status& status) {
  if (stopped_) return;
  is_silent_ = true;
  silence_ = ToStd(status.message());
  next_probe_ = now + limits_.probe_pause;
}

absl::Status CallWatch::Silence() const {
  return absl::UnavailableError(StrCat("the archive does not answer: ", silence_));
}

void CallWatch::LookForOverdue(absl::Time now) {
  for (Call& call : calls_) {
    if (call.is_told || now < call.deadline) continue;
    call.is_told = true;
    const absl::Status late = absl::DeadlineExceededError(
        StrCat("a call has had no answer for ", HumanDuration(now - call.begun)));
    Fail(call.kind, late);
    BeSilent(now, late);
  }
}

absl::StatusOr<bool> CallWatch::MustProbe() {
  const absl::MutexLock lock(&mutex_);
  const absl::Time now = Now();
  LookForOverdue(now);
  if (!is_silent_) return false;
  if (is_probed_ || now < next_probe_) return Silence();
  is_probed_ = true;
  return true;
}

void CallWatch::Probed(const absl::Status& status) {
  const absl::MutexLock lock(&mutex_);
  is_probed_ = false;
  if (IsAbsence(status)) {
    Fail(Kind::kRead, status);
    BeSilent(Now(), status);
    return;
  }
  is_silent_ = false;
  IsAnswer(status) ? Succeed(Kind::kRead) : Fail(Kind::kRead, status);
}

absl::StatusOr<CallWatch::Ticket> CallWatch::Begin(Kind kind, bool is_reader,
                                                   absl::Duration timeout) {
  const absl::Time asked = Now();
  for (;;) {
    {
      const absl::MutexLock lock(&mutex_);
      const absl::Time now = Now();
      LookForOverdue(now);
      if (is_silent_) return Silence();
      if (!is_reader || readers_ < limits_.readers_max) {
        readers_ += is_reader ? 1 : 0;
        moved_ = now;
        return calls_.insert(calls_.end(),
                             {kind, is_reader, now, now + timeout + limits_.stall, timeout, false});
      }
      if (now - moved_ >= limits_.stall || now - asked >= timeout) {
        return absl::UnavailableError(
            StrCat("the archive is slow: ", readers_, " calls wait for it already"));
      }
    }
    if (stopped_) return absl::UnavailableError("the server stops");
    absl::SleepFor(kPlaceLook);
  }
}

void CallWatch::End(Ticket call, bool is_reached, const absl::Status& status) {
  const absl::MutexLock lock(&mutex_);
  const Call ended = *call;
  calls_.erase(call);
  const absl::Time now = Now();
  moved_ = now;
  if (ended.is_reader) --readers_;
  if (IsAnswer(status)) return Succeed(ended.kind);
  // The archive was reached, even if it refused.
  if (is_reached) Of(Kind::kReach) = {};
  Fail(is_reached ? ended.kind : Kind::kReach, status);
  // A call that fails at once holds up no thread.
  if (IsAbsence(status) && now - ended.begun >= limits_.stall) BeSilent(now, status);
}

void CallWatch::BreakOff(Ticket call) {
  const absl::MutexLock lock(&mutex_);
  if (call->is_reader) --readers_;
  calls_.erase(call);
  moved_ = Now();
}

void CallWatch::Wait(Ticket call) {
  const absl::MutexLock lock(&mutex_);
  call->deadline = absl::InfiniteFuture();
}

void CallWatch::GoOn(Ticket call) {
  const absl::MutexLock lock(&mutex_);
  call->deadline = Now() + call->timeout + limits_.stall;
}

void CallWatch::ForgetChanges() {
  const absl::MutexLock lock(&mutex_);
  Of(Kind::kChange) = {};
}

void CallWatch::CountPut(uint64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  counts_.put_bytes += bytes;
}

void CallWatch::CountGot(uint64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  counts_.got_bytes += bytes;
}

ArchiveStanding CallWatch::Standing() {
  const absl::MutexLock lock(&mutex_);
  LookForOverdue(Now());
  ArchiveStanding standing = counts_;
  standing.is_silent = is_silent_;
  for (const Failing& failing : failing_) {
    if (failing.error.empty()) continue;
    if (!standing.error.empty() && standing.failing_since <= failing.since) continue;
    standing.error = failing.error;
    standing.failing_since = failing.since;
  }
  return standing;
}

}  // namespace h5mirror::archive
