// Notices a pause of the process that was so long that its fencing may have ended meanwhile
// (docs/design/048-ceph.md, "A pause").
#ifndef H5MIRROR_CEPH_PAUSE_WATCH_H_
#define H5MIRROR_CEPH_PAUSE_WATCH_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror::ceph {

// Thread-safe. A thread calls Beat() every second; each call that would reach Ceph asks
// is_too_long() before.
class PauseWatch {
 public:
  // `clock` must go on while the machine is suspended, and must outlive this.
  PauseWatch(Clock& clock, absl::Duration pause_max)
      : clock_(clock), pause_max_(pause_max), beat_ns_(Now()) {}

  // Stays true: after too long a pause no beat counts.
  bool is_too_long() const { return Pause() > pause_max_; }
  // Since the last beat that counted.
  absl::Duration Pause() const { return absl::Nanoseconds(Now() - beat_ns_.load()); }
  void Beat() {
    const int64_t now = Now();
    int64_t last = beat_ns_.load();
    // A thread that was paused right here must not hide the pause.
    while (now > last && absl::Nanoseconds(now - last) <= pause_max_ &&
           !beat_ns_.compare_exchange_weak(last, now)) {
    }
  }

 private:
  int64_t Now() const { return absl::ToInt64Nanoseconds(clock_.Monotonic()); }

  Clock& clock_;
  const absl::Duration pause_max_;
  std::atomic<int64_t> beat_ns_;
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_PAUSE_WATCH_H_
