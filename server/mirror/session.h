// One writer's session: what the frame stream means. Knows no gRPC: requests come decoded,
// answers go out through SessionOutput; clock, store and leases are given, so that a test
// or a simulation can drive it step by step.
//
//   kNew --open--> kOpening --> kWriting --half-close, stop, error, lost--> kEnding --> kEnded
//
// Requests of one session come one at a time (OnRequest, OnHalfClose). Everything else may
// come from any thread at any time; it waits until the request in hand is done.
#ifndef H5MIRROR_SERVER_MIRROR_SESSION_H_
#define H5MIRROR_SERVER_MIRROR_SESSION_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "h5mirror/v1/mirror.pb.h"
#include "onion_store/store.h"
#include "rpc/frame_codec.h"
#include "server/door/auth.h"
#include "server/metrics/metrics.h"
#include "server/mirror/session_memory.h"
#include "server/mirror/version_schedule.h"
#include "server/state/commit_board.h"
#include "server/state/lease_table.h"
#include "server/state/mirror_states.h"

namespace h5mirror::server {

// Where a session's answers go. Thread-safe; called with the session's lock held, so it must
// not call back.
class SessionOutput {
 public:
  virtual ~SessionOutput() = default;
  virtual void Send(v1::MirrorFileResponse response) = 0;
  // Ends the stream with `status` after everything that was sent. The first call counts.
  virtual void Finish(const absl::Status& status) = 0;
};

class HistoryPruner;

// What all sessions share. Everything outlives them.
struct SessionEnvironment {
  store::Store& store;
  LeaseTable& leases;
  Clock& clock;
  Metrics& metrics;
  SessionMemory& memory;
  CommitBoard& commits;
  // Barriers that may wait to become durable; beyond it the stream is not read.
  size_t open_barriers_max = 65536;
  // Is told that a history may have grown; nullptr: nobody is.
  HistoryPruner* pruner = nullptr;
  // Is told how files stand to their local ones; nullptr: nobody is.
  MirrorStates* mirrors = nullptr;
};

// Thread-safe as said above.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `output` must live until Detach().
  static std::shared_ptr<Session> Create(const SessionEnvironment& environment, Principal principal,
                                         std::string peer, SessionOutput& output);
  ~Session();

  // Opening a file may take milliseconds (the lease's token is made durable): the caller may
  // want to do so on another thread. True until `open` has been handled.
  bool WantsOpen() const;

  void OnRequest(const rpc::DecodedRequest& request);
  // A message that could not be decoded.
  void OnBadRequest(const absl::Status& status);
  // The client is done: its last cut stays, and the stream ends when all barriers are durable.
  void OnHalfClose();
  // The stream broke: the client is a lost writer.
  void OnLost();
  // The server stops: barriers in hand are finished, then the stream ends with kUnavailable.
  void OnStop();
  // Somebody else has the lease.
  void OnRevoked(const absl::Status& status);
  // Called every fraction of a second: keeps the lease while the server is the slow side, and
  // looks whether the barriers of a resumed stream have become durable.
  void OnTimer();

  // False while too many barriers wait to become durable; asked again after each answer.
  bool MayRead() const;

  // `output` is not used any more after this returns.
  void Detach();

 private:
  enum class Phase { kNew, kOpening, kWriting, kEnding, kEnded };

  // A barrier that was taken and is not durable yet.
  struct OpenBarrier {
    uint64_t seq = 0;
    store::BarrierKind kind = store::BarrierKind::kTick;
    absl::Time made;
    absl::Duration since;  // the same by a clock that nobody sets
    bool visible = false;
    bool folded = false;  // a close that becomes a version later
    std::optional<absl::StatusOr<store::DurableCut>> durable;
  };

  // How the session is to end.
  struct Ending {
    store::SessionEnd end = store::SessionEnd::kLost;
    absl::Status status;
    bool wait_for_barriers = false;
  };

  Session(const SessionEnvironment& environment, Principal principal, std::string peer,
          SessionOutput& output);

  // Marks that a request is in hand; the destructor carries out an ending that came meanwhile.
  class InHand;

  absl::Status Handle(const rpc::DecodedRequest& request);
  absl::Status Open(const v1::OpenSession& open);
  absl::StatusOr<std::shared_ptr<store::File>> FindFile(const v1::OpenSession& open);
  absl::Status FollowRename(const v1::OpenSession& open, const LeaseHolder& holder,
                            std::optional<LeaseHolder>* writer);
  // Sends `opened` with DIVERGED or BUSY and returns the status that ends the stream.
  absl::Status Refuse(v1::SessionOpened opened, v1::Relation relation, std::string state);
  absl::Status Begin(const v1::OpenSession& open, v1::SessionOpened opened);
  absl::Status Write(const rpc::WritesView& writes);
  absl::Status Truncate(const v1::Truncate& truncate);
  absl::Status KeepAlive(const v1::KeepAlive& keep_alive);
  absl::Status Cut(const v1::Barrier& barrier);
  absl::Status CheckBarrier(const v1::Barrier& barrier) const;
  absl::StatusOr<store::CutRequest> RequestOf(const v1::Barrier& barrier) const;

  void OnDurable(uint64_t seq, absl::StatusOr<store::DurableCut> durable);
  void AnswerDurable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerResumed(const store::FileInfo& info) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RequestEnd(Ending ending);
  void End(Ending ending);
  // Tells `mirrors`.
  void TellEnding(const Ending& ending);
  void FinishIfDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(v1::MirrorFileResponse response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogEnd(const absl::Status& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionEnvironment environment_;
  const Principal principal_;
  const std::string peer_;

  // Set by Open(), used by the thread that handles requests.
  std::shared_ptr<store::File> file_;
  std::string name_;
  Bytes16 file_id_{};
  store::Token token_ = 0;
  LeaseId lease_ = 0;
  store::SessionId session_id_{};
  v1::Writer writer_;
  uint64_t last_seq_ = 0;
  // Nothing has come since a clean close. Read by the thread that ends the session, when no request
  // is in hand.
  std::atomic<bool> closed_cleanly_{false};

  mutable absl::Mutex mutex_;
  SessionOutput* output_ ABSL_GUARDED_BY(mutex_);
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kNew;
  bool in_hand_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Ending> deferred_ ABSL_GUARDED_BY(mutex_);
  absl::Status final_status_ ABSL_GUARDED_BY(mutex_);
  bool wait_for_barriers_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<OpenBarrier> barriers_ ABSL_GUARDED_BY(mutex_);
  uint64_t resumed_seq_ ABSL_GUARDED_BY(mutex_) = 0;  // visible before, durability not told yet
  VersionSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  uint64_t received_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cut_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration started_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_SESSION_H_
