// The calls that wait for the next cut of a file, or for the end of its writer.
#ifndef H5MIRROR_SERVER_STATE_CUT_BOARD_H_
#define H5MIRROR_SERVER_STATE_CUT_BOARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror::server {

// Thread-safe. A waiter is called once, with no lock held, by the thread that made the cut, by the
// timer, or by Stop(): it must not wait.
class CutBoard {
 public:
  enum class Why : uint8_t { kCut, kTimeout, kStopped };
  using Waiter = std::function<void(Why)>;

  explicit CutBoard(Clock& clock) : clock_(clock) {}

  // Calls `waiter` at the next cut of `name`, or after `timeout` (as exactly as OnTimer() is
  // called); at once after Stop(). Returns an id for Cancel(), never 0.
  uint64_t Wait(std::string_view name, absl::Duration timeout, Waiter waiter);
  // True: the waiter will not be called. False: it was, or is being, called.
  bool Cancel(std::string_view name, uint64_t id);

  // Costs one look-up if no call waits.
  void OnCut(std::string_view name);
  // OnCut() for all files whose names begin with `prefix`: calls that wait for them look again.
  void OnCutBelow(std::string_view prefix);
  void OnTimer();
  void Stop();

  size_t size();

 private:
  struct Entry {
    uint64_t id;
    absl::Duration until;
    Waiter waiter;
  };
  using Entries = std::vector<Entry>;

  Clock& clock_;
  absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entries, std::less<>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_CUT_BOARD_H_
