// Limits how fast one session sends. A bucket fills at the configured rate and holds a quarter of a
// second's worth, so that no long burst follows a pause.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_PACING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_PACING_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. The times that are passed in must not go back; if they do, the bucket does
// not fill.
class Pacing {
 public:
  // 0: no limit.
  explicit Pacing(uint64_t bytes_per_second)
      : rate_(static_cast<double>(bytes_per_second)),
        capacity_(std::max(rate_ * kDepthSeconds, kLeastBytes)),
        level_(capacity_) {}

  // How many of `wanted` bytes may be sent now; 0: wait. Never only a few bytes: the fixed cost of
  // a frame would outweigh them.
  uint64_t Allowed(uint64_t wanted, absl::Time now) {
    if (rate_ == 0) return wanted;
    Fill(now);
    held_back_ = level_ < std::min(capacity_ / 2, kFrameBytesMin);
    return held_back_ ? 0 : std::min(wanted, static_cast<uint64_t>(level_));
  }

  // True: the last Allowed() returned 0.
  bool held_back() const { return held_back_; }

  void Sent(uint64_t bytes) {
    if (rate_ != 0) level_ -= static_cast<double>(bytes);
  }

 private:
  static constexpr double kDepthSeconds = 0.25;
  static constexpr double kLeastBytes = 4096;
  static constexpr double kFrameBytesMin = 65536;

  void Fill(absl::Time now) {
    if (now > filled_) {
      level_ = std::min(capacity_, level_ + rate_ * absl::ToDoubleSeconds(now - filled_));
    }
    filled_ = now;
  }

  double rate_;
  double capacity_;
  double level_;
  bool held_back_ = false;
  absl::Time filled_ = absl::InfiniteFuture();  // Full, until it is first asked.
};

// The largest frame: about the bytes that the link takes in half a second, so that progress shows
// on a slow link too. Pure, not thread-safe.
class FrameSize {
 public:
  explicit FrameSize(uint64_t bytes_max) : max_(bytes_max), bytes_(bytes_max) {}

  uint64_t bytes() const { return bytes_; }

  // Notes the time that the stream needed until it could take the next message.
  void Took(absl::Duration time) {
    if (time > kLong) {
      bytes_ = std::clamp(
          static_cast<uint64_t>(static_cast<double>(bytes_) * absl::FDivDuration(kWanted, time)),
          kBytesMin, max_);
    } else if (time < kShort) {
      bytes_ = std::min(2 * bytes_, max_);
    }
  }

  // The longest time for which bytes in the buffers between client and server may be in flight.
  absl::Duration BuffersTake() const {
    if (bytes_ == max_) return absl::ZeroDuration();
    return kWanted * (static_cast<double>(kBuffersBytes) / static_cast<double>(bytes_));
  }

 private:
  static constexpr absl::Duration kLong = absl::Seconds(1);
  static constexpr absl::Duration kWanted = absl::Milliseconds(500);
  static constexpr absl::Duration kShort = absl::Milliseconds(100);
  static constexpr uint64_t kBytesMin = 16 << 10;
  // Linux lets a socket's send buffer grow to 4 MiB (tcp_wmem); and gRPC's own.
  static constexpr uint64_t kBuffersBytes = 5 << 20;

  const uint64_t max_;
  uint64_t bytes_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_PACING_H_
