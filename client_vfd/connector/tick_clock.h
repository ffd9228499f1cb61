// When a file is due for a tick. Pure; times are of a steady clock, in nanoseconds.
//
//   unchanged ----OnChange----> changed ---IsDue: a tick has passed---> OnFlushed ---> unchanged
//             <--------------------------------------------------------OnProgramFlush
//       off   <--------------------------------------------------------OnFailed
//                          changed <---for one more tick---------------OnPutOff
//
// The first change counts, so a file that changes all the time is flushed once in a tick. Flushes
// take at most a twentieth of the time: with thousands of open datasets one takes 60 ms.
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_TICK_CLOCK_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_TICK_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace h5mirror::vol {

// Not thread-safe.
class TickClock {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // After a flush that took a second, none follows for this many seconds.
  static constexpr int64_t kRest = 20;

  // `tick_ns`: 0: never due.
  explicit TickClock(int64_t tick_ns) : tick_ns_(tick_ns) {}

  void OnChange(int64_t now) {
    if (due_ == kNever && tick_ns_ > 0) due_ = std::max(now + tick_ns_, rests_until_);
  }
  void OnFlushed(int64_t began, int64_t ended) {
    due_ = kNever;
    rests_until_ = ended + kRest * (ended - began);
  }
  // The program has flushed it.
  void OnProgramFlush() { due_ = kNever; }
  // It could not be flushed now, and is due again after a tick.
  void OnPutOff(int64_t now) { due_ = now + tick_ns_; }
  // A flush that failed is not tried again: the next error is the program's own.
  void OnFailed() {
    due_ = kNever;
    tick_ns_ = 0;
  }

  int64_t tick_ns() const { return tick_ns_; }  // 0: off
  int64_t due() const { return due_; }          // kNever: not changed, or off
  bool IsDue(int64_t now) const { return now >= due_; }

 private:
  int64_t tick_ns_;
  int64_t due_ = kNever;
  int64_t rests_until_ = 0;
};

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_TICK_CLOCK_H_
