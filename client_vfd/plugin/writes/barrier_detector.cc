#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

void BarrierDetector::Fail() {
  failed_ = true;
  truncated_ = false;
  closing_ = Closing::kNo;
}

void BarrierDetector::OnWrite(Outcome outcome) {
  if (outcome == Outcome::kFailed) Fail();
}

void BarrierDetector::OnTruncate(Phase phase, Outcome outcome) {
  if (outcome == Outcome::kFailed) {
    Fail();
  } else if (phase == Phase::kOpen) {
    // An H5Fflush begins: it writes everything that is still dirty, also what failed before.
    truncated_ = true;
    failed_ = false;
    closing_ = Closing::kNo;
  } else if (closing_ == Closing::kFlushed) {
    closing_ = Closing::kReady;
  } else if (closing_ == Closing::kNo) {
    closing_ = Closing::kTruncated;
  }
}

Moment BarrierDetector::OnFlush(Phase phase, Outcome outcome) {
  if (outcome == Outcome::kFailed) {
    Fail();
    return Moment::kNone;
  }
  if (phase == Phase::kClosing) {
    if (closing_ == Closing::kTruncated) closing_ = Closing::kFlushed;
    return Moment::kNone;
  }
  const bool consistent = truncated_ || swmr_;
  truncated_ = false;
  return consistent && !failed_ ? Moment::kFlush : Moment::kNone;
}

Moment BarrierDetector::OnClose() const {
  return closing_ == Closing::kReady && !failed_ ? Moment::kClose : Moment::kNone;
}

}  // namespace h5mirror::vfd
