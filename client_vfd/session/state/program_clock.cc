#include "client_vfd/session/state/program_clock.h"

#include <utility>

#include "client_vfd/session/state/stream_clock.h"

namespace h5mirror::vfd {
namespace {

// The patience with a server that did not answer another session just now.
constexpr absl::Duration kShortPatience = absl::Milliseconds(300);

// How long `left` bytes take, when it took `time` from `before` bytes to these.
absl::Duration TimeFor(uint64_t left, uint64_t before, absl::Duration time) {
  if (left == 0) return absl::ZeroDuration();
  if (left >= before) return absl::InfiniteDuration();
  return time * (static_cast<double>(left) / static_cast<double>(before - left));
}

}  // namespace

absl::Duration ProgramClock::Patience(bool is_suspect) const {
  // A program that waits an outage out waits for a slow answer too.
  const absl::Duration patience =
      std::max(limits_.timeout, std::min(limits_.outage_wait, StreamClock::kHungAfter));
  return is_suspect ? std::min(patience, kShortPatience) : patience;
}

void ProgramClock::BeginWait(absl::Time now, uint64_t left_bytes) {
  Progress(now);
  wait_time_ = now;
  wait_bytes_ = left_bytes;
}

void ProgramClock::OnHandedOver(absl::Time now, absl::Duration patience) {
  if (now > close_time_ + patience) close_time_ = now;
}

Wait::Wait(const ProgramClock& clock, absl::Time since, absl::Duration patience,
           absl::Duration linger)
    : clock_(clock),
      patience_(patience),
      latest_(clock.rides_out() ? absl::InfiniteFuture() : since + std::max(patience, linger)),
      checked_(since),
      left_bytes_(clock.wait_bytes()) {}

Wait::Look Wait::At(absl::Time now, absl::FunctionRef<uint64_t()> left_bytes) {
  const absl::Time began = std::max(checked_, clock_.wait_time());
  const bool flows = clock_.progress_time() > began;
  const absl::Time silent = clock_.progress_time() + patience_;
  if (now >= silent) return {Waited::kSilent, now};
  if (now >= latest_) return {Waited::kTooSlow, now};
  if (clock_.rides_out()) return {std::nullopt, silent};
  if (flows && now >= checked_ + patience_) {
    const uint64_t before = std::exchange(left_bytes_, left_bytes());
    if (now + TimeFor(left_bytes_, before, now - began) > latest_) return {Waited::kTooSlow, now};
    checked_ = now;
  }
  const absl::Time next = flows ? checked_ + patience_ : silent;
  return {std::nullopt, std::min({silent, next, latest_})};
}

}  // namespace h5mirror::vfd
