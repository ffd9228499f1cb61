// One writer's session on the server: handles the messages of a frame stream. It knows no gRPC:
// requests come decoded, answers go out through SessionOutput. Clock, store and leases are passed
// in, so that a test or a simulation can drive it step by step.
//
//   kNew --open--> kOpening --> kWriting --half-close, stop, error, lost--> kEnding --> kEnded
//
// Requests of one session come one at a time (OnRequest, OnHalfClose). The other calls may come
// from any thread at any time. An end that comes during a request waits until that is done.
//
// A stream that begins with `join` is a session without file and lease: it hands its writes to the
// session that it has joined (session_parts.cc).
#ifndef H5MIRROR_SERVER_MIRROR_SESSION_H_
#define H5MIRROR_SERVER_MIRROR_SESSION_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
#include "server/notify/event.h"
#include "server/quotas/space_quotas.h"
#include "server/state/commit_board.h"
#include "server/state/lease_table.h"
#include "server/state/mirror_states.h"
#include "server/state/write_rates.h"

namespace h5mirror::server {

// Takes a session's answers. Thread-safe. Called with the session's lock held, so it must not call
// back.
class SessionOutput {
 public:
  virtual ~SessionOutput() = default;
  virtual void Send(v1::MirrorFileResponse response) = 0;
  // Ends the stream with `status`, behind all answers. The first call counts.
  virtual void Finish(const absl::Status& status) = 0;
  // Checks a right that the session needs, also later, when rights change. Called without the
  // session's lock. `claimed`: the client's own account of itself, for the audit log's line about
  // the begin of the session; empty: no such line. Errors: as Authenticator::Check().
  virtual absl::Status Require(const Need& need, std::string claimed) = 0;
};

class HistoryPruner;

// The objects that all sessions share. They must outlive the sessions.
struct SessionEnvironment {
  store::Store& store;
  LeaseTable& leases;
  Clock& clock;
  Metrics& metrics;
  SessionMemory& memory;
  CommitBoard& commits;
  // How many barriers may wait to become durable; beyond this the stream is not read.
  size_t open_barriers_max = 65536;
  // Hears that a history may have grown; nullptr: none.
  HistoryPruner* pruner = nullptr;
  // Hears how files stand to their local ones; nullptr: none.
  MirrorStates* mirrors = nullptr;
  // Hears of the bytes that come; nullptr: none.
  WriteRates* rates = nullptr;
  // Hears of lost writers and diverged files; nullptr: none.
  EventSink* events = nullptr;
  // Knows the rights to single files; nullptr: the principal's are those to all.
  const Authenticator* authenticator = nullptr;
  // The limits of space; nullptr: none.
  SpaceQuotas* quotas = nullptr;
};

// Thread-safe as said above.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `output` must live until Detach().
  static std::shared_ptr<Session> Create(const SessionEnvironment& environment, Principal principal,
                                         std::string peer, SessionOutput& output);
  ~Session();

  // True until the `open` message has been handled. That may take milliseconds (the lease's token
  // is made durable), so the caller may handle it on another thread.
  bool WantsOpen() const;

  void OnRequest(const rpc::DecodedRequest& request);
  // A message that could not be decoded.
  void OnBadRequest(const absl::Status& status);
  // The client has ended in order: its last cut stays, and the stream ends when all barriers are
  // durable.
  void OnHalfClose();
  // The stream has broken: the writer is lost.
  void OnLost();
  // The server stops: the stream ends with kUnavailable once all barriers are durable.
  void OnStop();
  // OnStop() if the file's name begins with `prefix`, because another server will serve it. True:
  // the session has not ended yet.
  bool StopBelow(std::string_view prefix);
  // Another session or call has the lease.
  void OnRevoked(const absl::Status& status);
  // The stream is not read for a while, as its caller is over its bandwidth; or it is read again.
  void SetHeldBack(bool is_held_back);
  // To be called several times a second. Renews the lease while the server is the slow side. Sends
  // signs of life to a client that is held back. Answers barriers of a resumed stream that have
  // become durable.
  void OnTimer();

  // False while too many barriers wait to become durable; asked again after each answer.
  bool MayRead() const;

  // Does not use `output` after this has returned.
  void Detach();

 private:
  enum class Phase { kNew, kOpening, kWriting, kEnding, kEnded };

  // A barrier whose cut is not durable yet.
  struct OpenBarrier {
    uint64_t seq = 0;
    store::BarrierKind kind = store::BarrierKind::kTick;
    absl::Time made;
    absl::Duration since;  // the same by Clock::Monotonic()
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

  // Marks that a request is in hand. The destructor carries out an ending that came meanwhile.
  class InHand;

  absl::Status Handle(const rpc::DecodedRequest& request);
  absl::Status Open(const v1::OpenSession& open);
  absl::StatusOr<std::shared_ptr<store::File>> FindFile(const v1::OpenSession& open);
  absl::Status FollowRename(const v1::OpenSession& open, const LeaseHolder& holder,
                            std::optional<LeaseHolder>* writer);
  bool MayGetNewName(const std::string& from) const;
  absl::Status Require(const Need& need, std::string claimed);
  Rights RightsTo(const std::string& name) const;
  std::string Busy(const std::string& name, const LeaseHolder& holder) const;
  // If tables name owners: checks the right to write the file as it is now. Call it with the lease,
  // so that nobody else can create the file meanwhile.
  absl::Status CheckOwner() const;
  SessionMemory::Key MemoryKey() const;
  // Sends `opened` with DIVERGED or BUSY and returns the status that ends the stream.
  absl::Status Refuse(v1::SessionOpened opened, v1::Relation relation, std::string state);
  absl::Status Begin(const v1::OpenSession& open, v1::SessionOpened opened);
  absl::Status Write(const rpc::WritesView& writes);
  absl::Status WriteNow(const rpc::WritesView& writes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  absl::Status Truncate(const v1::Truncate& truncate);
  absl::Status KeepAlive(const v1::KeepAlive& keep_alive);

  // ---- session_parts.cc ----
  // A part that this stream brings to the session `lead`.
  struct Part {
    std::shared_ptr<Session> lead;
    store::Token token = 0;
    uint64_t after_cuts = 0;
    uint64_t bytes = 0;
  };
  absl::Status Join(const v1::JoinSession& join);
  absl::Status HandlePart(const rpc::DecodedRequest& request);
  absl::Status FinishPart();
  bool IsIdlePart() const;
  // For the streams that have joined this one. Errors: kAborted, it is not of the next cut.
  bool MayJoin(const v1::JoinSession& join);
  absl::Status WritePart(const Part& part, const rpc::WritesView& writes);
  absl::Status EndPart(const Part& part);
  bool IsNext(store::Token token, uint64_t after_cuts) const;

  // ---- session_cuts.cc ----
  absl::Status Cut(const v1::Barrier& barrier);
  absl::Status CutNow(const v1::Barrier& barrier) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  absl::Status CheckBarrier(const v1::Barrier& barrier) const
      ABSL_SHARED_LOCKS_REQUIRED(work_mutex_);
  absl::StatusOr<store::CutRequest> RequestOf(const v1::Barrier& barrier) const;
  void OnDurable(uint64_t seq, absl::StatusOr<store::DurableCut> durable);
  void AnswerDurable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsResumedDurable(const store::FileInfo& info) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AnswerResumed(const store::FileInfo& info, const absl::Status& acked)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void RequestEnd(Ending ending);
  void End(Ending ending);
  // The client's own account of itself, for the audit log and for events.
  std::string Account() const;
  static std::string ReasonOf(const Ending& ending, bool broke);
  // Tells `mirrors` and `events`.
  void TellEnding(const Ending& ending);
  void TellDiverged(const store::FileInfo& info, const std::string& reason);
  void GiveSign() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells `rates` of the bytes that have come since it was last told.
  void TellRates() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  std::string join_secret_;   // empty: no stream may join
  std::optional<Part> part_;  // set: this stream has joined another
  uint64_t last_seq_ = 0;
  // Held over each change of the file: joined streams make some. Before mutex_.
  absl::Mutex work_mutex_;
  WriterSpace space_ ABSL_GUARDED_BY(work_mutex_);
  uint64_t part_bytes_ ABSL_GUARDED_BY(work_mutex_) = 0;  // that came whole since the last cut
  // True: no message has come since a clean close. The thread that ends the session reads it, when
  // no request is in hand.
  std::atomic<bool> closed_cleanly_{false};

  mutable absl::Mutex mutex_;
  SessionOutput* output_ ABSL_GUARDED_BY(mutex_);
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kNew;
  bool in_hand_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Ending> deferred_ ABSL_GUARDED_BY(mutex_);
  std::string opened_name_ ABSL_GUARDED_BY(mutex_);  // of `open`; empty before it
  absl::Status final_status_ ABSL_GUARDED_BY(mutex_);
  bool wait_for_barriers_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<OpenBarrier> barriers_ ABSL_GUARDED_BY(mutex_);
  uint64_t resumed_seq_ ABSL_GUARDED_BY(mutex_) = 0;  // visible at the resume, not told as durable
  bool awaits_resumed_ ABSL_GUARDED_BY(mutex_) = false;  // the answer waits for its ack
  VersionSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  bool held_back_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_sign_ ABSL_GUARDED_BY(mutex_);
  uint64_t received_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t told_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, by TellRates()
  uint64_t cut_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration heard_ ABSL_GUARDED_BY(mutex_);  // of a part: when it came last
  absl::Duration started_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_SESSION_H_
