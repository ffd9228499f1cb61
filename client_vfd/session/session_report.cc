// A session's reports: to the program, and to the server, which passes them on to others.
#include <algorithm>
#include <cstring>

#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"
#include "rpc/frame_codec.h"

namespace h5mirror::vfd {

H5mState Session::ToldState() const { return standing_.Told(progress_.resyncs()); }

void Session::Status(H5mStatus* status) {
  absl::MutexLock lock(&mutex_);
  *status = H5mStatus{};
  status->state = ToldState();
  status->cut = std::max(base_.cut(), base_.cut_seen());
  status->version = base_.version();
  status->group_number = group_.durable_number();
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

bool Session::ReportIsDue(absl::Time now) const {
  // No report after the last barrier, which half-closes the stream, and none on a stream that does
  // not flow.
  if (!link_.is_open() || tickets_.IsFinalTaken() || life_.done() || outbox_.size() > 1)
    return false;
  return progress_.IsDue(ToldState(), now);
}

grpc::ByteBuffer Session::ReportMessage(absl::Time now) {
  const ProgressReport::Report report = progress_.Take(ToldState(), now);
  v1::MirrorFileRequest request;
  v1::MirrorStatus& mirror = *request.mutable_keep_alive()->mutable_mirror();
  mirror.set_state(report.resync ? v1::MIRROR_STATE_RESYNCING : v1::MIRROR_STATE_CONNECTED);
  FillTime(report.since, mirror.mutable_since_time());
  mirror.set_pending_bytes(static_cast<int64_t>(queue_.pending_bytes()));
  mirror.set_pending_cuts(static_cast<int64_t>(queue_.pending_cuts()));
  if (report.pending_since) FillTime(*report.pending_since, mirror.mutable_pending_since_time());
  if (report.resync) {
    mirror.set_resync_total_bytes(static_cast<int64_t>(report.resync->total_bytes));
    mirror.set_resync_sent_bytes(static_cast<int64_t>(report.resync->sent_bytes));
  }
  return rpc::EncodeRequest(request);
}

}  // namespace h5mirror::vfd
