// A session's timed work: it keeps the lease while its client cannot, gives signs of life, and
// answers a resumed stream.
#include <algorithm>
#include <utility>

#include "server/mirror/session.h"
#include "server/state/ack_gate.h"

namespace h5mirror::server {
namespace {

// A stream that does not say which file it is for is ended after this long.
constexpr absl::Duration kOpenTimeout = absl::Seconds(30);
// Between the signs of life of a stream that is held back.
constexpr absl::Duration kSignEvery = absl::Seconds(1);

}  // namespace

void Session::OnTimer() {
  if (WantsOpen() && environment_.clock.Monotonic() - started_ > kOpenTimeout) {
    return RequestEnd({store::SessionEnd::kLost,
                       absl::DeadlineExceededError("the stream sent no `open`"),
                       /*wait_for_barriers=*/false});
  }
  if (IsIdlePart()) {
    return RequestEnd({store::SessionEnd::kLost,
                       absl::DeadlineExceededError("a part of a cut stopped in the middle"),
                       /*wait_for_barriers=*/false});
  }
  std::shared_ptr<store::File> file;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kWriting) return;
    TellRates();
    // A client that waits for its commit, or whose stream is not read, has nothing to say.
    const bool waits_for_disk = std::any_of(
        barriers_.begin(), barriers_.end(),
        [](const OpenBarrier& barrier) { return barrier.kind != store::BarrierKind::kTick; });
    const bool server_is_slow = in_hand_ || held_back_ || waits_for_disk ||
                                barriers_.size() >= environment_.open_barriers_max;
    if (server_is_slow) environment_.leases.Renew(name_, lease_);
    GiveSign();
    if (resumed_seq_ == 0 || in_hand_ || awaits_resumed_) return;
    file = file_;
  }
  const auto info = file->Info();
  if (!info.ok()) return;  // The next write or cut meets the same error and reports it.
  {
    absl::MutexLock lock(&mutex_);
    if (!IsResumedDurable(*info)) return;
    awaits_resumed_ = true;
  }
  // This thread serves all sessions, so it does not wait for the registry.
  AwaitAck(*file, [weak = weak_from_this(), info = *info](const absl::Status& acked) {
    if (const auto session = weak.lock()) session->AnswerResumed(info, acked);
  });
}

void Session::TellRates() {
  const uint64_t news = received_bytes_ - std::exchange(told_bytes_, received_bytes_);
  if (environment_.rates != nullptr) environment_.rates->Add(file_id_, news);
}

void Session::SetHeldBack(bool is_held_back) {
  absl::MutexLock lock(&mutex_);
  held_back_ = is_held_back;
}

// A client gives up a stream that neither takes nor answers anything for some seconds.
void Session::GiveSign() {
  const absl::Duration now = environment_.clock.Monotonic();
  if (!held_back_ || now - last_sign_ < kSignEvery) return;
  last_sign_ = now;
  Send({});
}

bool Session::IsResumedDurable(const store::FileInfo& info) const {
  return resumed_seq_ != 0 && info.durable_barrier.session_id == session_id_ &&
         info.durable_barrier.seq >= resumed_seq_;
}

void Session::AnswerResumed(const store::FileInfo& info, const absl::Status& acked) {
  absl::MutexLock lock(&mutex_);
  awaits_resumed_ = false;
  // A later barrier may have been answered meanwhile, or the session has ended.
  if (!acked.ok() || phase_ != Phase::kWriting || !IsResumedDurable(info)) return;
  v1::MirrorFileResponse response;
  v1::CutDurable& answer = *response.mutable_cut_durable();
  answer.set_seq(std::exchange(resumed_seq_, 0));
  answer.set_cut(info.durable_cut);
  if (info.newest_version.cut == info.durable_cut) answer.set_version(info.newest_version.version);
  Send(std::move(response));
}

}  // namespace h5mirror::server
