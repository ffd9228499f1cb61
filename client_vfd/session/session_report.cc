// What a session says of itself: to the program, and to the server, which tells others.
#include <algorithm>
#include <cstring>
#include <utility>

#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"
#include "rpc/frame_codec.h"

namespace h5mirror::vfd {
namespace {

// While something is missing the server hears how much.
constexpr absl::Duration kReportEvery = absl::Seconds(1);

}  // namespace

H5mState Session::ToldState() const { return standing_.Told(resync_seq_ != 0); }

// All that was missing is in the cuts that are closed already, or in the next one.
void Session::BeginResync() {
  resync_total_bytes_ = queue_.pending_bytes();
  resync_sent_bytes_ = 0;
  const uint64_t cuts = std::max<uint64_t>(queue_.closed_cuts(), 1);
  resync_seq_ = resync_total_bytes_ > 0 ? queue_.last_seq() + cuts : 0;
  resync_since_ = host_.Now();
}

void Session::EndResync() {
  if (resync_seq_ == 0 || tickets_.durable_seq() < resync_seq_) return;
  resync_seq_ = 0;
  Notify("resynced", "", false);
}

void Session::Status(H5mStatus* status) {
  absl::MutexLock lock(&mutex_);
  *status = H5mStatus{};
  status->state = ToldState();
  status->cut = std::max(cut_, cut_seen_);
  status->version = version_;
  status->pending_bytes = queue_.pending_bytes();
  if (standing_.behind_since() != absl::InfinitePast()) {
    const absl::Duration behind_for = host_.Now() - standing_.behind_since();
    status->behind_for_ns = absl::ToInt64Nanoseconds(behind_for);
    // By the time of day as it is set now, which the caller compares it with.
    status->behind_since_ns = absl::ToUnixNanos(host_.TimeOfDay() - behind_for);
  }
  const std::string& detail = standing_.detail();
  const size_t length = std::min(detail.size(), sizeof status->message - 1);
  std::memcpy(status->message, detail.data(), length);
}

void Session::NotePending(absl::Time now) {
  const bool pending = queue_.pending_bytes() > 0 || tickets_.durable_seq() < queue_.last_seq();
  if (!pending) pending_since_ = absl::InfiniteFuture();
  if (pending && pending_since_ == absl::InfiniteFuture()) pending_since_ = now;
}

bool Session::ReportIsDue(absl::Time now) const {
  // After the last barrier the stream is half-closed; and one that does not flow needs no more.
  if (link_ != Link::kOpen || tickets_.IsFinalTaken() || done_ || outbox_.size() > 1) return false;
  if (reported_state_ != ToldState()) return true;
  const bool lags = resync_seq_ != 0 || pending_since_ != absl::InfiniteFuture();
  return (lags || reported_lag_) && now - reported_time_ >= kReportEvery;
}

grpc::ByteBuffer Session::ReportMessage(absl::Time now) {
  v1::MirrorFileRequest request;
  v1::MirrorStatus& mirror = *request.mutable_keep_alive()->mutable_mirror();
  const bool resyncs = resync_seq_ != 0;
  const bool lags = pending_since_ != absl::InfiniteFuture();
  mirror.set_state(resyncs ? v1::MIRROR_STATE_RESYNCING : v1::MIRROR_STATE_CONNECTED);
  FillTime(resyncs ? resync_since_ : opened_time_, mirror.mutable_since_time());
  mirror.set_pending_bytes(static_cast<int64_t>(queue_.pending_bytes()));
  mirror.set_pending_cuts(static_cast<int64_t>(queue_.pending_cuts()));
  if (lags) FillTime(pending_since_, mirror.mutable_pending_since_time());
  if (resyncs) {
    mirror.set_resync_total_bytes(static_cast<int64_t>(resync_total_bytes_));
    mirror.set_resync_sent_bytes(
        static_cast<int64_t>(std::min(resync_sent_bytes_, resync_total_bytes_)));
  }
  reported_state_ = ToldState();
  reported_time_ = now;
  reported_lag_ = resyncs || lags;
  return rpc::EncodeRequest(request);
}

}  // namespace h5mirror::vfd
