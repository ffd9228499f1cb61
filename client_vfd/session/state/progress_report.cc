#include "client_vfd/session/state/progress_report.h"

#include <algorithm>

namespace h5mirror::vfd {
namespace {

// While something is missing the server hears how much.
constexpr absl::Duration kReportEvery = absl::Seconds(1);

}  // namespace

void ProgressReport::OnOpened(absl::Time now) {
  opened_time_ = now;
  reported_state_ = H5M_STATE_OFF;
}

void ProgressReport::BeginResync(uint64_t missing_bytes, uint64_t last_seq, uint64_t closed_cuts,
                                 absl::Time now) {
  resync_ = {missing_bytes, 0};
  resync_seq_ = missing_bytes > 0 ? last_seq + std::max<uint64_t>(closed_cuts, 1) : 0;
  resync_since_ = now;
}

bool ProgressReport::OnDurable(uint64_t seq) {
  if (!resyncs() || seq < resync_seq_) return false;
  resync_seq_ = 0;
  return true;
}

void ProgressReport::NotePending(bool is_pending, absl::Time now) {
  pending_since_ = is_pending ? std::min(pending_since_, now) : absl::InfiniteFuture();
}

bool ProgressReport::IsDue(H5mState told, absl::Time now) const {
  if (reported_state_ != told) return true;
  return (lags() || reported_lag_) && now - reported_time_ >= kReportEvery;
}

ProgressReport::Report ProgressReport::Take(H5mState told, absl::Time now) {
  reported_state_ = told;
  reported_time_ = now;
  reported_lag_ = lags();
  Report report;
  report.since = resyncs() ? resync_since_ : opened_time_;
  if (pending_since_ != absl::InfiniteFuture()) report.pending_since = pending_since_;
  if (resyncs()) {
    report.resync = Resync{resync_.total_bytes, std::min(resync_.sent_bytes, resync_.total_bytes)};
  }
  return report;
}

}  // namespace h5mirror::vfd
