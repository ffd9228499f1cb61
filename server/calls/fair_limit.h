// Shares a bounded resource out to principals. One principal may use much of it while the others do
// not need it, and none can take the last of it.
//
// A principal may take more as long as it has less than the free rest times `share / (100 -
// share)`. With a share of 50 %, a single principal gets half. Of three that take as much as they
// can, each gets a quarter, and a quarter stays free. It is the dynamic threshold of
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
  // `capacity`: in any unit. `share_percent`: 1..100, the share of a single principal.
  FairLimit(uint64_t capacity, int share_percent)
      : capacity_(capacity), share_(static_cast<uint64_t>(std::clamp(share_percent, 1, 100))) {}

  // False: the principal has its share, or nothing is left.
  bool Take(const std::string& principal, uint64_t cost) {
    absl::MutexLock lock(&mutex_);
    if (cost > capacity_ - taken_) return false;
    const auto found = taken_by_.find(principal);
    const uint64_t its = found == taken_by_.end() ? 0 : found->second;
    // As floating point: no product overflows.
    const auto weight = [](uint64_t amount, uint64_t percent) {
      return static_cast<double>(amount) * static_cast<double>(percent);
    };
    if (share_ < 100 && weight(its, 100 - share_) >= weight(capacity_ - taken_, share_)) {
      return false;
    }
    taken_by_[principal] = its + cost;
    taken_ += cost;
    return true;
  }

  // Gives back the share of Take().
  void GiveBack(const std::string& principal, uint64_t cost) {
    absl::MutexLock lock(&mutex_);
    taken_ -= cost;
    const auto found = taken_by_.find(principal);
    found->second -= cost;
    if (found->second == 0) taken_by_.erase(found);
  }

  uint64_t capacity() const { return capacity_; }
  uint64_t share_percent() const { return share_; }

 private:
  const uint64_t capacity_;
  const uint64_t share_;
  absl::Mutex mutex_;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, uint64_t> taken_by_ ABSL_GUARDED_BY(mutex_);  // no value is 0
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_FAIR_LIMIT_H_
