#include "client_vfd/session/state/owner_search.h"

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {

void OwnerSearch::Begin() {
  wait_ = Wait::kNothing;
  next_ = absl::InfinitePast();
  asked_ = 0;
}

void OwnerSearch::Look(Wait wait, absl::Time now) {
  if (std::exchange(wait_, wait) != wait) since_ = now;
}

bool OwnerSearch::IsDue(absl::Time now) const {
  if (wait_ == Wait::kNothing || asked_ != 0 || now < next_) return false;
  return now - since_ >= (wait_ == Wait::kAnswer ? kSilentAfter : kShortAfter);
}

uint64_t OwnerSearch::Ask() { return asked_ = ++numbers_; }

bool OwnerSearch::Take(uint64_t number) {
  if (number != asked_) return false;
  asked_ = 0;
  return true;
}

void OwnerSearch::OnTold(Told told, absl::Time now) {
  switch (told) {
    case Told::kSame:
      next_ = now + kSameAgain + jitter_;
      break;
    case Told::kOther:
      next_ = now;
      break;
    case Told::kNobody:
      next_ = now + kNobodyAgain + jitter_;
      break;
  }
}

absl::Time ServerRounds::Next(size_t servers, absl::Time now) {
  if (std::exchange(is_first_, false)) return now;
  if (attempts_ == 0) begun_at_ = now;
  if (++attempts_ < std::min(servers, kAttemptsMax)) return now;
  attempts_ = 0;
  return std::max(now, begun_at_ + kEvery + jitter_);
}

}  // namespace h5mirror::vfd
