// Watches how the calls of an archive go, and says which may begin. So an archive that hangs holds
// up only a few threads of readers.
#ifndef H5MIRROR_ARCHIVE_CALL_WATCH_H_
#define H5MIRROR_ARCHIVE_CALL_WATCH_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::archive {

// How the calls of an archive went, since it was opened.
struct ArchiveStanding {
  absl::Time last_success = absl::InfinitePast();  // none
  // Why calls fail now: the error of the kind of call that has failed for the longest time. Empty:
  // no kind fails.
  std::string error;
  absl::Time failing_since = absl::InfinitePast();
  bool is_silent = false;  // calls get no answer; only short calls still ask
  uint64_t failed_calls = 0;
  uint64_t put_bytes = 0;
  uint64_t got_bytes = 0;
};

// Thread-safe. Waits for no network.
class CallWatch {
 public:
  // A success of one kind says little about the other kinds: a full archive can still be read.
  enum class Kind : uint8_t { kReach, kChange, kRead, kList };

  struct Limits {
    // The most calls of readers that may be under way at once. Background calls do not count.
    size_t readers_max = 8;
    // If no call has begun or ended for this long, no further call waits for a place.
    absl::Duration stall = absl::Seconds(2);
    // The time between two short calls that ask whether a silent archive answers again.
    absl::Duration probe_pause = absl::Seconds(5);
  };

  // A call that is under way.
  struct Call {
    Kind kind = Kind::kRead;
    bool is_reader = false;
    absl::Time begun;                              // monotonic; those of ArchiveStanding are not
    absl::Time deadline = absl::InfiniteFuture();  // should have ended or advanced by then
    absl::Duration timeout;
    bool is_told = false;  // it already counts as silence
  };
  using Ticket = std::list<Call>::iterator;

  // `stopped` must outlive this. Once it is set, no failure counts.
  CallWatch(Limits limits, const std::atomic<bool>& stopped) : limits_(limits), stopped_(stopped) {}

  // True: the archive is silent; the caller must make a short call, and report its end to Probed().
  // kUnavailable: the archive is silent, and another caller makes that call, or made it a moment
  // ago.
  absl::StatusOr<bool> MustProbe() ABSL_LOCKS_EXCLUDED(mutex_);
  void Probed(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // A call begins; End() must follow. A reader's call waits for a place while other calls begin and
  // end, at most `timeout`. kUnavailable: there is no place, or silence has begun.
  absl::StatusOr<Ticket> Begin(Kind kind, bool is_reader, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The call has ended with `status`. If the archive was not reached, a failure counts for all
  // calls (Kind::kReach), not for this kind.
  void End(Ticket call, bool is_reached, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // In place of End(): this server broke the call off, which says nothing about the archive.
  void BreakOff(Ticket call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Between these two calls, `call` waits for something other than the archive.
  void Wait(Ticket call) ABSL_LOCKS_EXCLUDED(mutex_);
  void GoOn(Ticket call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nothing is left to be put or deleted, so no such call can show that changes succeed again.
  void ForgetChanges() ABSL_LOCKS_EXCLUDED(mutex_);
  void CountPut(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountGot(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  ArchiveStanding Standing() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Failing {
    std::string error;  // empty: such calls do not fail
    absl::Time since;
    bool is_absence = false;  // there was no answer
  };

  Failing& Of(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return failing_[static_cast<size_t>(kind)];
  }
  void Succeed(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(Kind kind, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeSilent(absl::Time now, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls past their deadline count as silence, even before they end.
  void LookForOverdue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Silence() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  const std::atomic<bool>& stopped_;
  absl::Mutex mutex_;
  std::list<Call> calls_ ABSL_GUARDED_BY(mutex_);
  size_t readers_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time moved_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::array<Failing, 4> failing_ ABSL_GUARDED_BY(mutex_);
  bool is_silent_ ABSL_GUARDED_BY(mutex_) = false;
  std::string silence_ ABSL_GUARDED_BY(mutex_);  // why it counts as silent
  bool is_probed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_probe_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  ArchiveStanding counts_ ABSL_GUARDED_BY(mutex_);  // only its sums are used
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_CALL_WATCH_H_
