// Ends a thread that repeats a task.
#ifndef H5MIRROR_BASE_STOP_FLAG_H_
#define H5MIRROR_BASE_STOP_FLAG_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace h5mirror {

// A flag that is set once, with timed waits that end in time. absl's timed waits use the time of
// day: if that is set back by an hour, they last an hour longer. A server's beats must not stop for
// an hour.
//
// Thread-safe.
class StopFlag {
 public:
  // Ends all waits, now and later.
  void Set() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_set_ = true;
    }
    changed_.notify_all();
  }
  // Waits for Set(), at most for `timeout`: up to a year, or negative. True: Set() was called.
  bool AwaitSet(absl::Duration timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return is_set_; });
  }
  // Ends one AwaitSetOrWake(): the one that waits now, or the next one. For flags with one waiting
  // thread.
  void Wake() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_all();
  }
  // As AwaitSet(); ends at Wake(), too.
  bool AwaitSetOrWake(absl::Duration timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                      [this] { return is_set_ || is_woken_; });
    is_woken_ = false;
    return is_set_;
  }

 private:
  // Not absl's: see above.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
  bool is_woken_ = false;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_STOP_FLAG_H_
