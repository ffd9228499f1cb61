// One server of a cluster: all steps of the protocol (docs/design/049-cells.md), as a state machine
// with registry, fencing, stores and clock behind interfaces. cluster/runner.h gives it threads.
#ifndef H5MIRROR_CLUSTER_NODE_H_
#define H5MIRROR_CLUSTER_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/stop_flag.h"
#include "cluster/ack_guard.h"
#include "cluster/cells.h"
#include "cluster/fencer.h"
#include "cluster/member.h"
#include "cluster/records.h"
#include "cluster/registry.h"
#include "cluster/timing.h"
#include "cluster/watcher.h"

namespace h5mirror::cluster {

//              ┌──────────────── something to do ────────────────┐
//              v                                                 │
//   starting ─> joined ─> claiming ──────> fencing ──────> owning
//                 │          │                │              │
//                 └──────────┴── Drain() ─────┴──────────────┤
//                                                            v
//                                                        draining
//   every phase ── given up by others, fenced ──> gone <─────┘ no cell left
//
// In all phases from joined to draining its beats go on and its cells are served.
enum class NodePhase : uint8_t {
  kStarting,  // not in the registry yet: an earlier life of this server may have to be fenced
  kJoined,    // in the registry
  kClaiming,  // gives silent servers up, and takes cells that nobody owns
  kFencing,   // keeps a dead server's writes off the disk
  kOwning,    // nothing to do but to serve
  kDraining,  // gives its cells away, or has none and takes none as an operator wants it
  kGone,      // does and answers nothing more; for good
};

enum class Recovery : uint8_t {
  kNeeded,  // the last owner may have died
  kNone,    // it closed the cell in order
};

// The stores of the server.
class CellHost {
 public:
  // To be called once for each Open() and Close(), by any thread, also within them.
  using Done = std::function<void(absl::Status)>;

  virtual ~CellHost() = default;

  // Opens the store of a cell, and recovers it. Where recovery is needed, that goes through a
  // client of Ceph that knows the newest map of the OSDs, such as a new mount: an OSD refuses a
  // fenced server from the first operation with that map on. So each object that answers depend on
  // must be read or written, so that no late write of a former owner lands on it. Answers pass the
  // node's guard only when the registry has the cell as served. An error gives the cell to others,
  // and nothing of it may be left to be written by this process. kInternal: that cannot be said;
  // this server ends.
  virtual void Open(const std::string& cell, uint64_t epoch, Recovery recovery, Done done) = 0;

  // Ends the sessions and calls of a cell while its guard still passes their acks, and takes no new
  // ones. An error: they do not end in time. Then all is as before, and the cell is served on.
  virtual void Retire(const std::string& /*cell*/, uint64_t /*epoch*/, Done done) {
    done(absl::OkStatus());
  }

  // The guard passes answers of the cell from now on. Told once after each Open(), by the thread of
  // the protocol. Must not wait.
  virtual void Served(const std::string& /*cell*/, uint64_t /*epoch*/) {}

  // Takes no new call, ends those in hand, syncs and closes. The guard passes nothing of the cell
  // by then. After an error this server ends: bytes of it could still reach the disk.
  virtual void Close(const std::string& cell, uint64_t epoch, Done done) = 0;
};

// What an operator may want to be told of.
struct NodeEvent {
  enum class Kind : uint8_t {
    kTakenOver,   // a cell of a lost server is served here
    kHandedOver,  // a cell was given to another server, in order
    kDrained,     // this server has handed over its last cell, as an operator wants it
    kEvicted,     // this server has given another one up, as an operator wants it
    kFenced,      // this server has fenced another one
  };
  Kind kind;
  std::string subject;  // the cell's directory, or the server's ID
};

// Since the start of this server.
struct NodeCounts {
  uint64_t cells_owned = 0;     // now: served by it
  uint64_t cells_unserved = 0;  // now: served by no server that is alive
  uint64_t takeovers = 0;       // cells of lost servers that it has opened
  // Of these, together: from its first look that showed the server dead until it served the cell.
  absl::Duration takeover_time;
  uint64_t handovers = 0;  // cells that it has given away in order
  uint64_t drains = 0;     // how often an operator has asked it to hand over its cells
  uint64_t fenced = 0;     // servers that it has fenced
  uint64_t evictions = 0;  // servers that it has given up because an operator wanted it
};

struct NodeEvents {
  // Told once, by the thread that notices, with no lock held. May end the process. OK: drained.
  std::function<void(const absl::Status& why)> on_gone;
  // A line for the log. By the thread of Step(), with no lock held.
  std::function<void(const std::string& line)> on_note;
  // So is this.
  std::function<void(const NodeEvent& event)> on_event = nullptr;
  // And this, once: an operator wants this server to end in order.
  std::function<void()> on_exit_wanted = nullptr;
};

// Beat() is for one thread, and waits for the registry only. Step() is for one thread, and may wait
// for the registry and the fencing. All else is thread-safe. No lock is held over a call of
// registry, fencer, host or events.
class Node {
 public:
  // All must outlive this. The host may call a `Done` later than that.
  Node(Registry& registry, Fencer& fencer, CellHost& host, Clock& clock, const Timing& timing,
       ServerIdentity identity, NodeEvents events);
  Node(const Node&) = delete;

  // Once in `beat_every`: raises the own beat, or learns that this server is over.
  void Beat();
  // Reads the registry, and does what is to be done. Once in `beat_every`, or more often.
  void Step();
  // For the thread of Step(), between two of them: waits until the next one is due, the last one
  // having begun `elapsed` ago, or until the host has opened, retired or closed a cell, or Drain()
  // was called. True: EndWaits() was called.
  bool AwaitStep(absl::Duration elapsed) {
    return results_->news.AwaitSetOrWake(StepEvery() - elapsed);
  }
  // Ends the waits, now and later.
  void EndWaits() { results_->news.Set(); }
  // Between two steps: `beat_every`, or a fifth of it where another server may be silent soon, so
  // that it is given up, and its fencing seen, without delay.
  absl::Duration StepEvery() const;

  // Begins to give all cells away. The phase is gone when that is done.
  void Drain();
  // Gives the present life of a server in `view` up, though it may not be silent yet. With kForced
  // at the next Step(), though its beats go on. Else after some more beats of this one that
  // succeed, if the other one's has not changed since `view`: a late look of this server, or a
  // registry that was away, evicts nobody. Nothing, where that life is over by then.
  enum class Eviction : uint8_t { kIfSilent, kForced };
  void Evict(const ClusterView& view, const std::string& id, Eviction kind);
  // Ends at once, for a reason of the server's own (it is fenced, a disk fails). Others will fence
  // it.
  void End(const absl::Status& why);

  // Member::AddMount(); for CellHost::Open().
  absl::Status AddMount(const std::string& session, const std::vector<std::string>& addresses) {
    return member_.AddMount(session, addresses);
  }

  // Member::DropMount(); for CellHost::Open().
  absl::Status DropMount(const std::string& session, const std::vector<std::string>& addresses) {
    return member_.DropMount(session, addresses);
  }

  NodePhase phase() const;
  NodeCounts counts() const;
  // By ID, of the other servers of `view`, which was just read: how long their beats have not
  // changed, as this one has seen it. Not of those for which that is not known: this server has
  // not looked for some beats, and the beat has changed since, or it does not know the server yet.
  std::map<std::string, absl::Duration> BeatAges(const ClusterView& view) const;
  // The time since the last beat of its own that succeeded; InfiniteDuration: there was none.
  absl::Duration OwnBeatAge() const { return guard_.BeatAge(); }
  // To be asked before each answer.
  AckGuard& guard() { return guard_; }
  const Cells& cells() const { return cells_; }

  // Cells::Resolve(); reads the registry where the caller has heard more than this server, or of a
  // cell that it does not know. So it does for one caller at a time, and at most five times in
  // `beat_every`, where nobody serves the cell: it may have a new server by now. Not kReadAgain.
  // May wait for the registry.
  Route Find(std::string_view cell, uint64_t seen_epoch);

 private:
  // A cell that the registry has as this server's.
  enum class Stage : uint8_t {
    kNone,
    kOpening,
    kOpened,
    kRetiring,
    kRetired,
    kClosing,
    kClosed,
    kFailed
  };
  struct Held {
    uint64_t epoch = 0;
    Stage stage = Stage::kNone;
    absl::Status error = {};  // of kFailed
    // After a Retire() that failed: the next one is not before that, by the clock's Monotonic().
    absl::Duration retire_at = -absl::InfiniteDuration();
    absl::Duration retire_wait = absl::ZeroDuration();  // the last one
    bool is_told = false;                               // CellHost::Served()
  };
  // Opens and closes that have ended, told by any thread.
  struct Results {
    struct Result {
      std::string cell;
      uint64_t epoch;
      Stage stage;  // kOpened, kRetired or kClosed
      absl::Status status;
    };
    absl::Mutex mutex;
    std::vector<Result> list ABSL_GUARDED_BY(mutex);
    StopFlag news;  // woken with each, and by Drain()
  };

  absl::StatusOr<ClusterView> ReadView();
  // Of Find().
  bool BeginLook();
  void EndLook();
  void Start(ClusterView& view);
  // Before the join: whether another process beats under this ID.
  bool HasRival(const ClusterView& view);
  void StepJoined(ClusterView& view);

  // Takes what an operator wants of this server. False: not yet.
  bool TakeWish(const ClusterView& view);
  void NoteBeats(const ClusterView& view);
  // Those that are to be given up now.
  std::vector<std::string> TakeEvictions(const ClusterView& view);
  void GiveUp(ClusterView& view, const std::vector<std::string>& ids, std::string_view why);
  void FenceDead(ClusterView& view);
  // All that was noted of sessions that are not dead, as another server has fenced them.
  void ForgetDead(const std::set<std::string>& dead_sessions);
  bool MayFence(const std::string& id, const ServerRecord& record);
  void Claim(ClusterView& view);
  bool MayClaim(const ClusterView& view, const std::string& cell, const CellRecord& record);
  // How long a cell that can be claimed is left to others.
  absl::Duration PatienceFor(const ClusterView& view, const std::string& cell,
                             const CellRecord& record) const;
  // Whether a cell of this server is to be another's.
  bool IsToGive(const ClusterView& view, const std::string& cell) const;
  bool IsGivingAnother(const std::string& cell) const;
  bool HasOtherUp(const ClusterView& view) const;
  void TellServed(const std::string& cell);
  // Lets the guard pass answers of the cell.
  void Serve(const std::string& cell, Held& held);
  void TellGiven(const std::string& cell);
  void EndDrain(const ClusterView& view);

  void Tend(ClusterView& view);
  // True: the record has changed, and is to be looked at again.
  bool TendCell(ClusterView& view, const std::string& cell, const CellRecord& record);
  bool TendOpening(ClusterView& view, const std::string& cell, CellRecord record, Held& held);
  bool TendServed(ClusterView& view, const std::string& cell, CellRecord record, Held& held);
  bool TendDraining(ClusterView& view, const std::string& cell, CellRecord record, Held& held);
  void TakeResults();
  CellHost::Done Then(const std::string& cell, uint64_t epoch, Stage stage);

  // The record of a cell becomes `record` with the next seq, if all is as in `view` and this server
  // is not given up. True: it is, and `view` has it.
  bool SetCell(ClusterView& view, const std::string& cell, CellRecord record);
  bool SetServer(ClusterView& view, const std::string& id, ServerState state,
                 std::vector<Expectation> expected);
  bool IsOwn(const CellRecord& record) const;
  bool wants_drain() const;
  void SetPhase(NodePhase phase);
  void Note(const std::string& line);
  void Tell(NodeEvent::Kind kind, const std::string& subject);

  Registry& registry_;
  Fencer& fencer_;
  CellHost& host_;
  Clock& clock_;
  const Timing timing_;
  const NodeEvents events_;

  AckGuard guard_;
  Member member_;
  Cells cells_;
  const std::shared_ptr<Results> results_ = std::make_shared<Results>();

  // Of the thread of Step().
  Watcher watcher_;
  OwnBeats looks_;  // before the join
  BeatRecord rival_beat_;
  int rival_beats_ = 0;
  std::map<std::string, Held> held_;                    // by cell
  std::map<std::string, absl::Duration> claimable_at_;  // by cell: seen first
  std::map<std::string, absl::Duration> reopen_at_;     // by cell: after an open that failed
  // By session: seen first; -InfiniteDuration where it was silent for long enough before.
  std::map<std::string, absl::Duration> dead_at_;
  std::set<std::string> given_up_;  // sessions that this server set to dead
  std::set<std::string> fenced_;    // and are not recorded as fenced yet
  // When each was seen dead first. By session.
  std::map<std::string, absl::Duration> lost_at_;
  std::map<std::string, absl::Duration> taken_since_;  // by cell: lost_at_ of its former owner
  bool stands_aside_ = false;                          // an operator wants it to have no cell
  bool is_drained_ = false;                            // and it has none
  bool is_exit_told_ = false;

  mutable absl::Mutex mutex_;
  NodePhase phase_ ABSL_GUARDED_BY(mutex_) = NodePhase::kStarting;
  bool wants_drain_ ABSL_GUARDED_BY(mutex_) = false;
  // The life of a server that an operator wants to be given up.
  struct WantedEviction {
    uint64_t epoch = 0;
    Eviction kind = Eviction::kIfSilent;
    BeatRecord beat;
    OwnBeats since;  // of this server
  };
  std::map<std::string, WantedEviction> evictions_ ABSL_GUARDED_BY(mutex_);  // by ID
  NodeCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, SeenBeat> beats_seen_ ABSL_GUARDED_BY(mutex_);  // by ID
  absl::Duration looked_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool looks_for_caller_ ABSL_GUARDED_BY(mutex_) = false;  // Find() reads
  absl::Duration caller_look_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_NODE_H_
