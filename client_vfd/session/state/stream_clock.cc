#include "client_vfd/session/state/stream_clock.h"

namespace h5mirror::vfd {

void StreamClock::Begin(absl::Time now) {
  flow_time_ = now;
  owed_since_ = absl::InfiniteFuture();
}

void StreamClock::OnTaken(absl::Time now) {
  flow_time_ = now;
  frame_size_.Took(now - sent_time_);
}

void StreamClock::OnHung(absl::Time now, bool is_taking) {
  if (is_taking) frame_size_.Took(now - sent_time_);
}

absl::Duration StreamClock::HungAfter() const {
  return std::max(timeout_, kHungAfter) + frame_size_.BuffersTake();
}

bool StreamClock::MayGoOn(absl::Time now, absl::Time since) const {
  return now - std::max(flow_time_, since) < HungAfter();
}

bool StreamClock::IsHung(absl::Time now, absl::Time since) const {
  return now - std::max(flow_time_, since) > HungAfter();
}

}  // namespace h5mirror::vfd
