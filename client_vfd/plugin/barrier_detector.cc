#include "client_vfd/plugin/barrier_detector.h"

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

CutKind BarrierDetector::OnFlush(Phase phase, Outcome outcome) {
  if (outcome == Outcome::kFailed) {
    Fail();
    return CutKind::kNone;
  }
  if (phase == Phase::kClosing) {
    if (closing_ == Closing::kTruncated) closing_ = Closing::kFlushed;
    return CutKind::kNone;
  }
  const bool consistent = truncated_ || swmr_;
  truncated_ = false;
  return consistent && !failed_ ? CutKind::kFlush : CutKind::kNone;
}

CutKind BarrierDetector::OnClose() const {
  return closing_ == Closing::kReady && !failed_ ? CutKind::kClose : CutKind::kNone;
}

}  // namespace h5mirror::vfd
