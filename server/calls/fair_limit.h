// Shares a bounded resource out to principals, so that one may use much of it while the others do
// not need it, and none can take the last of it.
//
// A principal may take more for as long as what it holds is less than what is left, times
// `share / (100 - share)`. With a share of 50 %, one alone gets half; of three that take what they
// can each gets a quarter, and a quarter is left for the next. It is the dynamic threshold of
// Choudhury and Hahne ("Dynamic queue length thresholds for shared-memory packet switches", 1998).
#ifndef H5MIRROR_SERVER_CALLS_FAIR_LIMIT_H_
#define H5MIRROR_SERVER_CALLS_FAIR_LIMIT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::server {

// Thread-safe.
class FairLimit {
 public:
  // `capacity`: in whatever is counted. `share_percent`: 1..100, what one alone may have.
  FairLimit(uint64_t capacity, int share_percent)
      : capacity_(capacity), share_(static_cast<uint64_t>(std::clamp(share_percent, 1, 100))) {}

  // False: the principal has had its share, or nothing is left.
  bool Take(const std::string& principal, uint64_t cost) {
    absl::MutexLock lock(&mutex_);
    if (cost > capacity_ - taken_) return false;
    const auto found = held_.find(principal);
    const uint64_t held = found == held_.end() ? 0 : found->second;
    // As floating point: no product overflows.
    const auto weight = [](uint64_t amount, uint64_t percent) {
      return static_cast<double>(amount) * static_cast<double>(percent);
    };
    if (share_ < 100 && weight(held, 100 - share_) >= weight(capacity_ - taken_, share_)) {
      return false;
    }
    held_[principal] = held + cost;
    taken_ += cost;
    return true;
  }

  // What Take() gave.
  void GiveBack(const std::string& principal, uint64_t cost) {
    absl::MutexLock lock(&mutex_);
    taken_ -= cost;
    const auto found = held_.find(principal);
    found->second -= cost;
    if (found->second == 0) held_.erase(found);
  }

  uint64_t capacity() const { return capacity_; }
  uint64_t share_percent() const { return share_; }

 private:
  const uint64_t capacity_;
  const uint64_t share_;
  absl::Mutex mutex_;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, uint64_t> held_ ABSL_GUARDED_BY(mutex_);  // none is 0
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_FAIR_LIMIT_H_
