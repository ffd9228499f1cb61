// How a server stops.
#include <algorithm>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/mirror_server.h"

namespace h5mirror::server {
namespace {

// The time that a stop leaves receivers for events that came just before.
constexpr absl::Duration kNotifyGrace = absl::Seconds(2);
constexpr absl::Duration kLookAtCalls = absl::Milliseconds(10);
// A call that has passed the gate and waits for a thread is not in hand yet: one that ends gives it
// a thread. So nothing is in hand only where this many looks in a row say so.
constexpr int kLooksInARow = 5;
// The end of a stop's time, in which calls that have not ended hear of the stop. Old clients take
// gRPC's own kCancelled for an end, and kUnavailable for a reason to ask again.
constexpr absl::Duration kEndCallsIn = absl::Seconds(1);
// The same for those that do not end by themselves, as where a client does not read.
constexpr absl::Duration kCancelIn = absl::Milliseconds(400);
constexpr char kEnded[] =
    "the server is stopping, and has ended this call, which may have been done; ask again once it "
    "runs";
// When the calls are done, clients take leave of their connections. One that waits for a call, or
// whose program looks at its connections all the time, does so at once. One in whose program no
// thread waits for gRPC looks once in 5 s (gRPC's GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS), and
// a program that stands still never: gRPC would wait 20 s for it. Nobody is to wait for those.
constexpr absl::Duration kLeaveMax = absl::Milliseconds(500);
// The same where calls were in hand: the answer of the last one may still be on its way to a slow
// client. Cut off, it would have its user ask again for what was done.
constexpr absl::Duration kAnswerMax = absl::Seconds(2);

absl::Duration Now() { return SystemClock().Monotonic(); }

absl::Duration Until(absl::Duration time) { return std::max(time - Now(), absl::ZeroDuration()); }

// Waits until nothing is in hand, or for `end`. Whether anything was.
bool AwaitCalls(Callers& callers, absl::Duration end) {
  bool had_calls = false;
  for (int looks = 0; looks < kLooksInARow && Until(end) > absl::ZeroDuration();) {
    const bool has_calls = callers.InHand() > 0;
    had_calls = had_calls || has_calls;
    looks = has_calls ? 0 : looks + 1;
    if (looks < kLooksInARow) absl::SleepFor(kLookAtCalls);
  }
  return had_calls;
}

// Ends all calls in hand until `end`. Those that have not ended `cancel_in` before are cut off.
void EndCalls(Callers& callers, absl::Duration end, absl::Duration cancel_in) {
  const absl::Status why = absl::UnavailableError(kEnded);
  callers.EndInHand(why);
  AwaitCalls(callers, end - cancel_in);
  callers.CancelInHand(why);
  AwaitCalls(callers, end);
}

}  // namespace

void MirrorServer::StopTimer() {
  {
    absl::MutexLock lock(&mutex_);
    timer_stopping_ = true;
  }
  if (timer_.joinable()) timer_.join();
  shared_.pruner.Stop();
  shared_.quotas.counter.Stop();
  KeepMirrorStates();
}

// A new call would get no answer from gRPC but kCancelled, so the gate refuses it before.
void MirrorServer::StopCalls(absl::Duration end) {
  bool had_calls = shared_.callers.InHand() > 0;
  entrance_.door->StopAccepting();
  entrance_.gate->BeginStop();
  services_.health.StopServing();
  // First: that sessions end by it is not that nobody writes any more.
  services_.snapshots.BeginStop();
  services_.mirror.BeginStop();
  if (entrance_.http != nullptr) entrance_.http->BeginStop();
  // Readers that wait for an archive which hangs would hold the stop up.
  shared_.archive_keeper.BeginStop();
  const absl::Duration left = Until(end);
  had_calls = AwaitCalls(shared_.callers, end - std::min(kEndCallsIn, left / 2)) || had_calls;
  if (shared_.callers.InHand() > 0) EndCalls(shared_.callers, end, std::min(kCancelIn, left / 4));
  const absl::Duration leave_max = had_calls ? kAnswerMax : kLeaveMax;
  entrance_.server->Shutdown(absl::ToChronoTime(absl::Now() + std::min(Until(end), leave_max)));
}

absl::Status MirrorServer::Stop(absl::Duration timeout) {
  const absl::Duration end = Now() + timeout;
  if (entrance_.server != nullptr) StopCalls(end);
  services_.mirror.Stop();
  StopTimer();
  // Only now: what writers wait for comes first.
  if (entrance_.http != nullptr) H5M_RETURN_IF_ERROR(entrance_.http->AwaitEnd(Until(end)));
  H5M_RETURN_IF_ERROR(shared_.archive_keeper.AwaitEnd(Until(end)));
  entrance_.server.reset();
  if (entrance_.gate != nullptr) entrance_.gate->Close();
  services_.versions.Stop();
  services_.snapshots.Stop();
  notifier_->Stop(kNotifyGrace);
  shared_.metrics.StopServing();
  return absl::OkStatus();
}

}  // namespace h5mirror::server
