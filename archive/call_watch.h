// How the calls of an archive go, and which may begin: what hangs holds few threads of readers.
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
  // Why calls fail now: of the kinds of calls that fail, the one that does so for the longest time.
  // Empty: none does.
  std::string error;
  absl::Time failing_since = absl::InfinitePast();
  bool is_silent = false;  // calls get no answer, and only short ones ask again
  uint64_t failed_calls = 0;
  uint64_t put_bytes = 0;
  uint64_t got_bytes = 0;
};

// Thread-safe. Waits for no network.
class CallWatch {
 public:
  // One that succeeds says little of the others: a full archive reads well.
  enum class Kind : uint8_t { kReach, kChange, kRead, kList };

  struct Limits {
    // Calls that may be under way at once, but for those in the background.
    size_t readers_max = 8;
    // When no call has begun or ended for so long, no further one waits for a place.
    absl::Duration stall = absl::Seconds(2);
    // Between two short calls that ask whether a silent archive answers again.
    absl::Duration probe_pause = absl::Seconds(5);
  };

  // A call that is under way.
  struct Call {
    Kind kind = Kind::kRead;
    bool is_reader = false;
    absl::Time begun;                              // monotonic, as all but those of ArchiveStanding
    absl::Time deadline = absl::InfiniteFuture();  // by when it should have ended, or gone on
    absl::Duration timeout;
    bool is_told = false;  // it has counted as silence
  };
  using Ticket = std::list<Call>::iterator;

  // `stopped` must outlive this. Once it is set, no failure counts.
  CallWatch(Limits limits, const std::atomic<bool>& stopped) : limits_(limits), stopped_(stopped) {}

  // True: the archive is silent, and the caller makes a short call and gives its end to Probed().
  // kUnavailable: it is silent, and another caller does that, or did a moment ago.
  absl::StatusOr<bool> MustProbe() ABSL_LOCKS_EXCLUDED(mutex_);
  void Probed(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // A call begins; End() follows. A reader's waits for a place while others begin and end, at most
  // `timeout`. kUnavailable: there is no place, or silence has begun.
  absl::StatusOr<Ticket> Begin(Kind kind, bool is_reader, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Where the archive was not reached, `status` says nothing of this kind of calls alone.
  void End(Ticket call, bool is_reached, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // In place of End(): the call was broken off by this server, which says nothing of the archive.
  void BreakOff(Ticket call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Between both the call waits for something else than the archive.
  void Wait(Ticket call) ABSL_LOCKS_EXCLUDED(mutex_);
  void GoOn(Ticket call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nothing is left to be put or deleted, so that no such call can show that they succeed again.
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
  // Calls that should have ended count as silence, though they have not.
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
  ArchiveStanding counts_ ABSL_GUARDED_BY(mutex_);  // its sums alone
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_CALL_WATCH_H_
