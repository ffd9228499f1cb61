#include "client_vfd/session/state/owner_search.h"

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {
namespace {

bool IsOfOpenStream(OwnerSearch::Wait wait) {
  return wait == OwnerSearch::Wait::kAnswer || wait == OwnerSearch::Wait::kDoubt;
}

}  // namespace

void OwnerSearch::Begin() {
  wait_ = Wait::kNothing;
  next_ = absl::InfinitePast();
  asked_ = 0;
  refusals_ = 0;
}

void OwnerSearch::OnLeft() {
  if (wait_ == Wait::kOpening) short_after_ = std::min(2 * short_after_, kSilentAfter);
}

void OwnerSearch::Look(Wait wait, absl::Time now) {
  const Wait before = std::exchange(wait_, wait);
  // Doubt that comes or goes ends no silence.
  const bool goes_on = IsOfOpenStream(before) && IsOfOpenStream(wait);
  if (before != wait && !goes_on) since_ = now;
}

bool OwnerSearch::IsDue(absl::Time now) const {
  if (wait_ == Wait::kNothing || asked_ != 0 || now < next_) return false;
  if (refusals_ >= kRefusalsMax) return false;
  if (wait_ == Wait::kOpening) return now - since_ >= short_after_;
  return now - since_ >= (wait_ == Wait::kAnswer ? kSilentAfter : kShortAfter);
}

uint64_t OwnerSearch::Ask() { return asked_ = ++numbers_; }

bool OwnerSearch::Take(uint64_t number) {
  if (number != asked_) return false;
  asked_ = 0;
  return true;
}

void OwnerSearch::OnTold(Told told, absl::Time now) {
  if (told != Told::kSilent) silent_again_ = kNobodyAgain;
  switch (told) {
    case Told::kRefused:
      ++refusals_;
      [[fallthrough]];
    case Told::kSame:
      next_ = now + kSameAgain + jitter_;
      break;
    case Told::kOther:
    case Told::kLacks:
      next_ = now;
      break;
    case Told::kNobody:
      next_ = now + kNobodyAgain + jitter_;
      break;
    case Told::kSilent:
      next_ = now + silent_again_ + jitter_;
      silent_again_ = std::min(2 * silent_again_, kSilentAgainMax);
      break;
  }
}

absl::Time ServerRounds::Next(size_t servers, absl::Time now) {
  if (now - opened_at_ >= kHeldFor) OnAck();
  opened_at_ = absl::InfiniteFuture();
  if (lost_at_ == absl::InfiniteFuture()) {
    lost_at_ = now;
    return now;
  }
  if (attempts_ == 0) begun_at_ = now;
  if (++attempts_ < std::min(servers, kAttemptsMax)) return now;
  attempts_ = 0;
  if (now - lost_at_ > kHurryFor) every_ = std::min(2 * every_, kEveryMax);
  return std::max(now, begun_at_ + every_ + jitter_);
}

}  // namespace h5mirror::vfd
