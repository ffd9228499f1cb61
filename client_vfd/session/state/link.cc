#include "client_vfd/session/state/link.h"

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {

uint64_t Link::Begin(const StreamClaim& claim, absl::Time now) {
  phase_ = claim.may_send_early ? Phase::kOpeningSends : Phase::kOpening;
  resumes_ = claim.resume;
  answer_ = Answer::kNone;
  hurries_ = false;
  is_cancelled_ = false;
  retry_time_ = now + kRetryEvery;
  return ++stream_count_;
}

void Link::OnOpened() {
  phase_ = Phase::kOpen;
  ever_opened_ = true;
  is_full_ = false;
  full_retry_ = kRetryEvery;
  next_rest_ = kRetryEvery;
}

void Link::Rest(absl::Time now) {
  rest_end_ = now + next_rest_;
  next_rest_ = std::min(2 * next_rest_, kRestMax);
}

void Link::OnFull() {
  if (is_full_) full_retry_ = std::min(2 * full_retry_, kFullRetryMax);
  is_full_ = true;
}

void Link::OnBusy(std::string holder) {
  answer_ = Answer::kBusy;
  holder_ = std::move(holder);
}

void Link::End() {
  phase_ = Phase::kNone;
  was_busy_ = was_busy_ || answer_ == Answer::kBusy;
}

void Link::Lose(absl::Time now) {
  phase_ = Phase::kNone;
  retry_time_ = now + (is_full_ ? full_retry_ : kRetryEvery);
}

bool Link::Leave() {
  hurries_ = !is_none();
  phase_ = Phase::kNone;
  return hurries_;
}

bool Link::TakeCancel() { return std::exchange(is_cancelled_, false); }

void Link::TakeOverRetry(absl::Time retry_time) {
  retry_time_ = retry_time;
  hurries_ = false;
}

}  // namespace h5mirror::vfd
