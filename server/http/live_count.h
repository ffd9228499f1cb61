// Counts the living objects of a kind, and waits for the last one.
#ifndef H5MIRROR_SERVER_HTTP_LIVE_COUNT_H_
#define H5MIRROR_SERVER_HTTP_LIVE_COUNT_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::server {

// Thread-safe.
class LiveCount {
 public:
  // Counts as long as it lives. As the first member of a class it counts until all other members
  // have gone.
  class Hold {
   public:
    explicit Hold(std::shared_ptr<LiveCount> count) : count_(std::move(count)) { count_->Add(); }
    Hold(const Hold& other) : Hold(other.count_) {}
    Hold& operator=(const Hold&) = delete;
    ~Hold() { count_->Drop(); }

   private:
    const std::shared_ptr<LiveCount> count_;
  };

  // Returns how many are left after `timeout`.
  size_t AwaitNone(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &LiveCount::IsNone), timeout);
    return alive_;
  }

 private:
  bool IsNone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return alive_ == 0; }
  void Add() {
    absl::MutexLock lock(&mutex_);
    ++alive_;
  }
  void Drop() {
    absl::MutexLock lock(&mutex_);
    --alive_;
  }

  absl::Mutex mutex_;
  size_t alive_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_LIVE_COUNT_H_
