// A caller's rate: a token bucket for the allowed one, and a meter of the used one. The rate is
// passed in each time, so that a new one counts at once.
#ifndef H5MIRROR_SERVER_QUOTAS_RATE_BUCKET_H_
#define H5MIRROR_SERVER_QUOTAS_RATE_BUCKET_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace h5mirror::server {

// Holds one second of `rate`, and begins full: so after a pause a second's worth may come
// at once. Pure, not thread-safe. Times are monotonic.
class RateBucket {
 public:
  // Whether one more may come now.
  bool HasOne(uint64_t rate, absl::Duration now) {
    Fill(rate, now);
    return level_ >= 1;
  }
  void TakeOne() { level_ -= 1; }

  // Takes `amount`, even if the bucket lacks it. Returns the place in the queue of the amounts that
  // are taken ahead.
  uint64_t TakeAhead(uint64_t rate, uint64_t amount, absl::Duration now) {
    Fill(rate, now);
    level_ -= static_cast<double>(amount);
    taken_ += amount;
    return taken_;
  }
  // The time until the bucket has earned all amounts up to `place`; 0: it has.
  absl::Duration Until(uint64_t place, uint64_t rate, absl::Duration now) {
    Fill(rate, now);
    const double owed = -level_ - static_cast<double>(taken_ - place);
    return owed <= 0 ? absl::ZeroDuration() : absl::Seconds(owed / static_cast<double>(rate));
  }

 private:
  void Fill(uint64_t rate, absl::Duration now) {
    const double depth = static_cast<double>(rate);
    const double more = is_new_ ? depth : depth * absl::ToDoubleSeconds(now - filled_);
    level_ = std::min(depth, level_ + std::max(more, 0.0));
    is_new_ = false;
    filled_ = now;
  }

  double level_ = 0;  // < 0: taken ahead
  uint64_t taken_ = 0;
  bool is_new_ = true;
  absl::Duration filled_;
};

// The amount of the last whole second. Pure, not thread-safe.
class RateMeter {
 public:
  void Add(uint64_t amount, absl::Duration now) {
    Turn(now);
    current_ += amount;
  }
  uint64_t LastSecond(absl::Duration now) {
    Turn(now);
    return last_;
  }

 private:
  void Turn(absl::Duration now) {
    const int64_t second = absl::ToInt64Seconds(now);
    if (second == second_) return;
    last_ = second == second_ + 1 ? current_ : 0;
    current_ = 0;
    second_ = second;
  }

  int64_t second_ = 0;
  uint64_t current_ = 0;
  uint64_t last_ = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_QUOTAS_RATE_BUCKET_H_
