// Limits the bytes a second of work that may wait.
#ifndef H5MIRROR_ARCHIVE_PACE_H_
#define H5MIRROR_ARCHIVE_PACE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "archive/retry.h"

namespace h5mirror::archive {

// Thread-safe.
class Pace {
 public:
  // `rate`: bytes a second; 0: no limit.
  Pace(uint64_t rate, const RetryClock& clock) : rate_(rate), clock_(clock) {}

  // Waits until `bytes` more may pass. kUnavailable: `stopped` was set meanwhile.
  absl::Status Take(uint64_t bytes, const std::atomic<bool>& stopped) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (rate_ == 0) return absl::OkStatus();
    for (absl::Duration wait = Reserve(bytes); wait > absl::ZeroDuration(); wait -= kSlice) {
      if (stopped) return absl::UnavailableError("the server stops");
      clock_.sleep(std::min(wait, kSlice));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr absl::Duration kSlice = absl::Milliseconds(100);

  absl::Duration Reserve(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_.now();
    const absl::Time turn = std::max(next_, now);
    next_ = turn + absl::Seconds(static_cast<double>(bytes) / static_cast<double>(rate_));
    return turn - now;
  }

  const uint64_t rate_;
  const RetryClock clock_;
  absl::Mutex mutex_;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_PACE_H_
