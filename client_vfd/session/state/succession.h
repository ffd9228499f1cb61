// From one open of a file to the next in the same program, seen from the later one.
//
//   kBegins --OnStarted--> kOpen: the session before has not ended, or no stream was needed yet
//      |                     |
//      +-------Claim---------+--> kClaimed: the base of the changes is known
//
// A program that opens, changes and closes a file in a loop must not wait for the server's syncs,
// and must not lose its mirror to an outage that spans two opens. So a session that the program has
// closed hands over to the next one what it would still have to see through:
//
// - its last cut is visible, not durable: the next session goes on from that cut at once. The
//   server may still lose it. So the next one keeps the changes that it would take with it, and
//   sends them again should its own stream break.
// - it has not read all of its last cut from the file, since the server is away: the next session
//   takes its place, with all that it has not brought across.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_SUCCESSION_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_SUCCESSION_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/hex.h"
#include "base/local_record.h"
#include "client_vfd/session/state/cut_queue.h"
#include "client_vfd/session/state/mirror_base.h"
#include "client_vfd/session/state/relation.h"
#include "client_vfd/session/state/standing.h"

namespace h5mirror::vfd {

enum class Handing {
  kWhenItCan,
  kAtClose,  // the follower is closed too: a cut on its way is handed over unanswered
  kNow       // the program ends: no answer is waited for
};

struct Handover {
  // The last session of the row that may have left a cut on the server.
  Bytes16 session_id{};
  LocalRecord record;
  std::optional<RecordPlace> place;  // of the record
  Relation relation;
  // How the next session holds `changes`: kFollows if they are in flight already.
  MirrorBase::Heritage heritage = MirrorBase::Heritage::kFollows;
  int64_t cut_seen = 0;
  int64_t base_cut = 0;  // `changes` are what came after it; 0: they are the whole file
  Changes changes;
  int from = 0;       // how many sessions' changes
  Standing standing;  // if that is behind
  absl::Time retry_time;
};

// A session, for the next one of its file. Thread-safe.
class Predecessor {
 public:
  virtual ~Predecessor() = default;
  virtual bool done() const = 0;
  // Done, and its stream has ended: the server has released the lease.
  virtual bool gone() const = 0;
  // Another program had the file meanwhile.
  virtual bool LostFile() = 0;
  // If the file is not as it was closed, waits until this session has ended, at most as long as a
  // call waits. Then its record is final.
  virtual void AwaitEnd(const LocalFacts& facts) = 0;
  // Unset: nothing to hand over, or not yet. `facts`: those of the file when it was opened again.
  virtual std::optional<Handover> HandOver(const LocalFacts& facts, Handing handing) = 0;
};

// Not thread-safe. It asks its predecessor, which may take a lock of its own.
class Succession {
 public:
  enum class Phase { kBegins, kOpen, kClaimed };
  enum class Awaits {
    kHandover,
    kEnd  // with mode=remote the next session goes on from the server's state
  };
  enum class Followed {
    kWaits,  // the predecessor is still to end, or to hand over
    kMayGoOn
  };

  explicit Succession(Awaits awaits) : awaits_(awaits) {}

  // Before anything else. `predecessor` may be null.
  void Begin(std::shared_ptr<Predecessor> predecessor) { predecessor_ = std::move(predecessor); }
  void OnStarted() {
    if (phase_ == Phase::kBegins) phase_ = Phase::kOpen;
  }
  // Returns the phase before. In kBegins the file is as it was opened.
  Phase Claim() { return std::exchange(phase_, Phase::kClaimed); }

  // Asks the predecessor, if there is one. When the session may go on, the predecessor is
  // forgotten; `from` receives the handover.
  Followed Follow(const LocalFacts& facts, Handing handing, std::optional<Handover>* from);
  // Only if waits_to_claim(). The program is about to give the file's lock back, and the next
  // opener needs a record of all changes. If the session may go on, it is claimed now; the end of
  // its predecessor's stream is awaited later.
  Followed FollowAtClose(const LocalFacts& facts, std::optional<Handover>* from);

  Phase phase() const { return phase_; }
  bool is_claimed() const { return phase_ == Phase::kClaimed; }
  bool has_predecessor() const { return predecessor_ != nullptr; }
  bool may_claim() const { return !is_claimed() && !has_predecessor(); }
  bool waits_to_claim() const { return !is_claimed() && has_predecessor(); }

 private:
  const Awaits awaits_;
  Phase phase_ = Phase::kBegins;
  std::shared_ptr<Predecessor> predecessor_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_SUCCESSION_H_
