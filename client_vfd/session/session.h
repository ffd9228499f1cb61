// One writer's open of one mirrored file: the bytes that the server lacks, and its answers.
//
// Two threads meet here. The program's thread writes the local file and adds the ranges to the cut
// queue (cut_queue.h). The sender thread of the process reads the ranges from the file and writes
// them to the stream. At a barrier the program's thread waits here, with a deadline, not in gRPC.
//
// LIFE
//
//   Start()              take the record over, and claim how file and mirror stand (relation.h)
//   Pump()               sender: open a stream. Its first message has the claim; once the session
//                        has sent a barrier, RESUME from the newest durable cut
//   OnOpened()           sender: the server's answer. Go on, or BUSY, or DIVERGED
//   BeforeWrite(), AfterWrite()   around each local write
//   Cut(), AwaitCut()    a barrier, and the wait for its ack
//   Seal(), AwaitSealed(), BeginClose(), Close()   the last barrier, a commit; see below
//   FinishSession()      the last record. The stream ends, and with it the lease
//
// A barrier has three numbers: a ticket, when the cut is closed (CloseCut()); a seq, when it is
// sent (CutQueue::Next()); a cut, when the server answers. CutTickets leads from ticket to seq. A
// lost ticket is never answered: its cut was dropped.
//
// WAITING
//
// A call of the program waits until the server was silent for Patience(). Then it goes on, and its
// cut is still on the way. The sender gives the stream up later, when an answer is owed for
// HungAfter(): a disk that takes two seconds to sync is no outage. With `outage_wait` the call
// gives the stream up itself, and waits for the next one (RideOut()).
//
// When a stream is lost, the queue puts all that is not durable back into its open cut. A stream
// begins again at the next barrier, and brings it. Where the file is still as the last flush left
// it, the timer makes that barrier.
//
// ORDER OF WRITES BESIDE THE FILE
//
// The record (base/local_record.h) tells the next session how far this one came. The dirty map
// (base/dirty_map.h) names what the server lacks. Neither is synced: after a power loss an old
// record does not match the file's stat, and nothing is overwritten.
//
//   at the start  1. record: kOpen, without a dirty map
//                 2. the program's first byte changes the file
//   at the close  1. Seal() ends the cut. The sender reads all its bytes, or the timeout passes
//                 2. dirty map of all that is not durable
//                 3. record: kBehind, with the map, and with the barrier if that was sent
//                 4. the caller gives the file's lock back
//                 5. the server says durable. Record: kClean; then the map is removed
//
// A map is written before the record that names it, and removed after a record that does not. 3
// stands before 4: the program that takes the lock next must find how far this session came.
//
// After 4 another program may change the file. So a barrier that is sent then is noted in the
// record first (NoteBarrier()). It is not sent if the file is not as it was closed, or if the
// record is another session's by now. This session then leaves the record alone.
//
// OBJECTS
//
// What the session knows and decides is in the objects of state/, which have no lock, clock or I/O.
// Each draws its phases:
//
//   CutQueue, CutTickets       what is to be sent, cut by cut; what became of each cut
//   GroupProgress              the cuts of a family, split or multi file that they belong to
//   MirrorBase                 what the changes come on top of, and whose they are
//   Link                       the streams, one after the other, and when to try again
//   OwnerSearch, ServerRounds  when other servers of a cluster are asked for the file's
//   LackingOwner               whether one is believed that is to make the file
//   ProgramClock, StreamClock  how long a call waits; when a stream is given up
//   Standing, ProgressReport   what the program is told; what the server is told
//   Closing, OutsideCut        how far the file is closed; what was changed without the driver
//   Succession, Lifetime       what came before, and whether it is claimed; its end, what follows
//
// Beside them stands SessionRecord, which reads and writes the record (session_record.h).
//
// The session keeps the lock. It drives the objects with the program's calls, the stream's answers
// and the timer, and carries out what they decide.
//
// INVARIANTS
//
// - The server shows bytes only when their barrier has come, and the bytes of a cut are those of
//   the moment at which it was closed. So a reader never sees a mixture.
// - A range is forgotten only when a barrier behind it is durable on the server.
// - A session that cannot tell that its file continues a cut of the server says so (base_cut -1).
//   The server then answers DIVERGED. Nothing is overwritten on either side.
// - With mode=remote there is no record and no map. Bytes without an ack at the close are lost, and
//   the close says so (session_remote.cc).
//
// More: docs/design/020-which-side-is-right.md (claims, one open to the next), and
// docs/design/025-threads-and-locks-client.md (locks, fork).
#ifndef H5MIRROR_CLIENT_VFD_SESSION_SESSION_H_
#define H5MIRROR_CLIENT_VFD_SESSION_SESSION_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/dirty_map.h"
#include "client_vfd/api/session_api.h"
#include "client_vfd/session/child_writes.h"
#include "client_vfd/session/file_reader.h"
#include "client_vfd/session/outbox.h"
#include "client_vfd/session/session_host.h"
#include "client_vfd/session/session_record.h"
#include "client_vfd/session/state/closing.h"
#include "client_vfd/session/state/cut_queue.h"
#include "client_vfd/session/state/cut_tickets.h"
#include "client_vfd/session/state/group_progress.h"
#include "client_vfd/session/state/lacking_owner.h"
#include "client_vfd/session/state/lifetime.h"
#include "client_vfd/session/state/link.h"
#include "client_vfd/session/state/metadata_pages.h"
#include "client_vfd/session/state/mirror_base.h"
#include "client_vfd/session/state/outside_cut.h"
#include "client_vfd/session/state/owner_search.h"
#include "client_vfd/session/state/pacing.h"
#include "client_vfd/session/state/program_clock.h"
#include "client_vfd/session/state/progress_report.h"
#include "client_vfd/session/state/relation.h"
#include "client_vfd/session/state/standing.h"
#include "client_vfd/session/state/stream_clock.h"
#include "client_vfd/session/state/stream_parts.h"
#include "client_vfd/session/state/succession.h"
#include "client_vfd/session/state/window_share.h"
#include "client_vfd/session/stream.h"
#include "rpc/channel.h"
#include "rpc/client_options.h"
#include "rpc/server_route.h"

namespace h5mirror::vfd {

// The claim of a session with mode=remote, whose local file is a spool (H5M_REMOTE_... of
// session_api.h).
struct RemoteClaim {
  Claim claim = Claim::kUpload;
  int64_t base_cut = 0;
};

// The attach's arguments, owned.
struct SessionConfig {
  std::string real_path;
  std::string record_tag;  // RecordPlace::tag
  std::string name;
  LocalFacts facts;
  std::optional<RemoteClaim> remote;  // instead of the facts
  uint32_t mode_bits = 0;
  rpc::ClientOptions server;
  std::string comment;
  std::string program;
  H5mAck ack_commit = H5M_ACK_DURABLE;
  bool checksum = false;
  uint64_t window_bytes = 0;
  // How long a call of the program waits for a server that is silent.
  absl::Duration timeout;
  // How long a close may wait in all, where data flows fast enough to be there by then.
  absl::Duration linger;
  // How long barriers wait for a server that is away, before the program goes on locally.
  absl::Duration outage_wait;
  uint64_t bandwidth_bytes_per_second = 0;  // 0: no limit
  uint32_t page_size_bytes = 0;
  absl::Duration version_every;         // zero: flushes make no versions
  absl::Duration version_min_interval;  // zero: every close makes one
  // A change by a program without the driver becomes a version first, if session_outside.cc finds
  // no objection. The caller holds the file's lock.
  bool adopts_outside_change = false;
  // The file already has the program's changes since its open, and is consistent now.
  bool is_written = false;
  // Other processes may bring parts of its cuts.
  bool takes_parts = false;
  void (*notify)(void*, const H5mEvent*) = nullptr;
  void (*release)(void*) = nullptr;
  void* context = nullptr;
};

// The right to bring parts of a session's next cut. Secret.
struct PartTicket {
  Bytes16 session_id{};
  Bytes16 join_secret{};
  StreamParts::Place place;
};

// The program's side is called by one thread at a time; the sender thread may be in another call.
// The host owns the session until it is done and its stream has ended.
class Session final : public std::enable_shared_from_this<Session>,
                      public Predecessor,
                      private StreamOwner {
 public:
  // Reads the record, claims the file and has the host connect. Waits for the server only where an
  // outside change is taken in, at most `timeout` or 5 s for each of two steps.
  static std::shared_ptr<Session> Start(SessionHost& host, SessionConfig config,
                                        std::unique_ptr<FileReader> file);
  ~Session() override;

  // The program's thread; see session_api.h.
  // Errors: kAlreadyExists      the server has a file of this name already.
  //         kAborted            the file has changed there since it was opened.
  //         kResourceExhausted  another writer holds it.
  //         kPermissionDenied   the server refuses it for good.
  //         kDeadlineExceeded   no answer.
  absl::Status AwaitOpened();
  void BeforeWrite(Extent extent);
  void AfterWrite(Extent extent, H5mWriteClass write_class);
  void AfterTruncate(uint64_t size_bytes);
  // A barrier in two steps, so that a file's mirrors are waited for at once. AwaitCut() answers for
  // the last Cut(). False: not acknowledged as asked; the mirror is behind or diverged.
  void Cut(CutKind kind, H5mAck ack, std::string comment);
  bool AwaitCut();
  // Call before Cut() or Seal(): sets the group's cut to which the next cut belongs.
  void SetGroup(std::optional<GroupCut> group);
  // As Cut() of a tick that waits for no ack. Makes no cut if nothing was written since the newest
  // one.
  void TickIfChanged();
  // Returns when no closed cut needs the local file's present bytes any more: they are sent, or
  // copied. A cut that does not get there in time is given up; its ranges join the next cut.
  void DetachCuts();
  // A part of the next cut that another process sends (session_parts.cc, and part_ticket of
  // session_api.h). Waits as DetachCuts(). Unset: no parts now.
  std::optional<PartTicket> TicketForPart();
  // The part has ended. False: it failed, or its stream has moved on or is gone. Then call
  // AfterWrite() for its ranges.
  enum class PartEnd { kSent, kFailed };
  bool EndPart(const StreamParts::Place& place, const std::vector<Extent>& extents, PartEnd end);
  // A close in four steps.
  void Seal();
  void AwaitSealed();
  void BeginClose();
  // kUnavailable: not acknowledged as configured; the message says why.
  absl::Status Close();
  void Status(H5mStatus* status);
  void ChildWrote();

  // The sender thread.
  void Pump();
  void OnTimer();
  // Half-closes and forgets the stream, as before a fork. The next one resumes when it is needed.
  void LeaveStream();
  // The program ends: gives up what is still under way. The record says what is missing.
  void GiveUp();
  // The process talks to no server any more: goes on locally, and says `why`. The stream is left as
  // it is, and no call waits.
  void Abandon(const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Predecessor, for the next session of the file (session_handover.cc).
  bool done() const override { return life_.done(); }
  bool gone() const override { return life_.gone(); }
  bool LostFile() override ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitEnd(const LocalFacts& facts) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Handover> HandOver(const LocalFacts& facts, Handing handing) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  bool released() const { return life_.released(); }
  bool is_abandoned() const { return life_.abandoned(); }
  bool SameFile(const Session& other) const;
  // Another session has taken over the work of this one. This is no session's predecessor any more.
  bool superseded() const { return life_.superseded(); }
  absl::Duration timeout() const { return config_.timeout; }

 private:
  using Audience = Standing::Audience;

  // Cut() leaves this to AwaitCut().
  struct AskedCut {
    CutKind kind = CutKind::kTick;
    H5mAck ack = H5M_ACK_NONE;
    std::string comment;
    absl::Time since;
    uint64_t ticket = 0;
    bool is_awaited = false;  // false: no answer can come
  };

  Session(SessionHost& host, SessionConfig config, std::unique_ptr<FileReader> file);

  // StreamOwner.
  void OnWritable() override;
  void OnResponse(const v1::MirrorFileResponse& response) override;
  void OnEnded(const absl::Status& status) override;

  // From one open of a file to the next (session_handover.cc).
  void NoteFollower(bool as_closed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBeFollowed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFinalVisible() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUnread(Handing handing) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsRipe(Handing handing) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverCut(Handover& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverChanges(Handover& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FollowPredecessor(Handing handing = Handing::kWhenItCan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closed by the program, but its base cut is unknown until the predecessor ends.
  bool WaitsToClaim() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return succession_.waits_to_claim() && tickets_.sealed() && collecting();
  }
  void ClaimClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClaimToClose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Inherit(Handover from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeOver(const Changes& changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All that is not durable is sent again, as one cut: nobody waits for those that were closed.
  void LoseCuts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The session that made the server's newest cuts, if any: this one or one that it followed.
  Bytes16 LastSession() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return link_.ever_opened() || queue_.last_seq() > 0 ? session_id_ : base_.followed_session();
  }

  // From one program to the next (session_dirty_map.cc).
  void TakeUp(const DirtyMap& map) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FollowClose(const DirtyMap& map, Changes changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<DirtyMap> MakeDirtyMap() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SaveDirtyMap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Changes that a program without the driver has made (session_outside.cc).
  bool IsWhole() const;
  bool ClaimOutside(const std::optional<FoundRecord>& found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeOutsideIn() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteOutside() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitOutside() ABSL_LOCKS_EXCLUDED(mutex_);

  // Without a local file (session_remote.cc).
  void ClaimRemote() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMovedOn(const v1::SessionOpened& opened) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenResult() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpRemote() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Begin and resume (session_link.cc).
  void Claim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetRename() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsStream(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartStream();
  grpc::ByteBuffer OpenMessage(const StreamClaim& claim, uint64_t stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnOpened(const v1::SessionOpened& opened) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDiverged(const v1::SessionOpened& opened) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginAsNewFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseFinalCut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeBase(const v1::SessionOpened& opened) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDurable(const v1::CutDurable& durable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryFirstAgain(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  enum class Retry {
    kNever,     // only at the program's next barrier
    kFinalCut,  // also by itself, for the last cut of a closed file
    kTakeover,  // the same, for as long as AwaitsTakeover()
    kAtOnce     // the same, and at once: the server is there, and the next claim is another
  };
  Retry RetryAfter(const absl::Status& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LeavesItToFollower() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeFinalAttempt(Retry retry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The file is closed, and another server of the cluster may take its cell over in time.
  bool AwaitsTakeover() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After a server of a cluster that is away, or may be of another one.
  Retry RetryInCluster() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseEnded(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A stream that no server took has ended with `status`. True: `status` is a refusal, and another
  // server of the list is asked now or soon. The refusing server may belong to another cluster.
  bool AskOthersFirst(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The server has ended the stream with kUnavailable.
  void LeaveServer(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the next attempt wait for a token, for room, or for a new connection, as `status` asks.
  void NoteFailure(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream has ended with `status`. True: another server of the cluster serves the file, and
  // the next stream goes there at once.
  bool FollowElsewhere(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: a new credential of munge is asked for, and the stream may be taken with it.
  bool AwaitsCredential(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: another token than that of the newest stream is there.
  bool TakeNewToken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GoOnWithToken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseStream(const std::string& why, Retry retry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The server of the cluster (session_search.cc).
  // The servers that are configured, with the token that counts now.
  rpc::ClientOptions ClusterNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of these the one that is asked, or the one that has the file.
  rpc::ClientOptions ServerNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream has ended: the next one begins when it is the turn of the next server.
  void HurryToOthers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  OwnerSearch::Wait WaitsFor() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SearchServer(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnServerTold(uint64_t number, const ServerAnswer& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the server of the answer serves this session's file.
  bool Serves(const ServerAnswer& answer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBeNew() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  OwnerSearch::Told HearOfLacking(const std::string& server, OwnerSearch::Told told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the answer of `asked_route_`; moves to that server where it serves the file.
  OwnerSearch::Told WeighAnswer(const ServerAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream is given up, and the next one begins there at once.
  void MoveTo(const rpc::ServerRoute& route) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool KeepInTouch(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpHung(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FollowerIsGone(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Sending (session_send.cc).
  void SendNext();
  Stream* ForgetStream();
  // The session is done and the stream is writable: ends the stream.
  void EndStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Prepare();
  grpc::ByteBuffer EncodePieces(const SendWrites& work, char* buffer, absl::Status* status);
  grpc::ByteBuffer EncodeBarrier(const SendBarrier& barrier) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Waiting (session_outage.cc).
  // Closes a cut and notes it in `asked_`. True: the caller wakes the sender.
  bool AskCut(CutKind kind, H5mAck ack, std::string comment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The server's silence counts from here on. Called before each Await(). With several mirrors that
  // may be much earlier: the call waits for the others first.
  void BeginWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for `reached`. `since`: when the program's call began. `linger`: how long the call may
  // take in all; used only where the program goes on locally during an outage.
  Waited Await(absl::FunctionRef<bool()> reached, absl::Time since,
               absl::Duration linger = absl::ZeroDuration()) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls Await(), and RideOut() each time that the server goes away, until `acked`.
  Waited AwaitThrough(absl::FunctionRef<bool()> reached, absl::FunctionRef<bool()> acked,
                      absl::FunctionRef<bool()> lost, absl::FunctionRef<bool()> cut,
                      absl::Time since, absl::Duration linger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for the final cut.
  Waited AwaitFinal(absl::FunctionRef<bool()> reached, absl::FunctionRef<bool()> acked,
                    absl::FunctionRef<bool()> cut) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitUntil(absl::FunctionRef<bool()> reached, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits while the server is away: at most `outage_wait` from the start of the outage, and at most
  // until `give_up`. `give_up` ends the program's call; the first outage sets it. While the awaited
  // cut is `lost`, `cut` makes another; it returns false if it cannot. True: the server is back,
  // and the cut is on its way.
  bool RideOut(absl::FunctionRef<bool()> lost, absl::FunctionRef<bool()> cut, absl::Time* give_up)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitHandedOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitFinalCut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For a file that is given up without a clean close: waits for the cut of its last flush.
  void AwaitLastCut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration Patience() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Progress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reports (session_report.cc). The state that others hear: RESYNCING during a resync, else that
  // of `standing_`.
  H5mState ToldState() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReportIsDue(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::ByteBuffer ReportMessage(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: changes are collected. Also after a refusal: a token may have expired, and then the next
  // program's open sends the changes.
  bool collecting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !standing_.is_diverged(); }
  bool may_be_answered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return collecting() && !link_.is_refused();
  }
  // `quiet`: the next attempt comes at once, and the user need not know yet.
  void GoBehind(const std::string& why, bool quiet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TimeOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the stream up, because its server is silent or too slow. The next server of a list is
  // asked.
  void CutOff(const std::string& why, Retry retry = Retry::kNever)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the stream up for a reason on this side. The session stays with its server.
  void CutOffHere(const std::string& why, Retry retry = Retry::kNever)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(const char* event, const std::string& detail, bool to_user)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyOut(Extent extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As CutQueue::MergeTick(), if the open cut may grow.
  bool MergeTick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !parts_.is_spoiled() && queue_.MergeTick();
  }
  void NoteChildren() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t CloseCut(CutKind kind, std::string comment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LostNewestCut() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAtNewestCut() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CloseResult() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FileIsAsClosed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteUnconfirmed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NoteBarrier() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAnothersFile() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<RecordGroup> GroupOfClose() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: not written. It failed, and the user was told; or the record is another session's.
  bool SaveRecord(RecordState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the record: kOpen while the program has the file open, then kBehind. False: not written.
  bool SaveProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SettleClose(bool is_acked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndBehind() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishSession() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishAlone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SessionHost& host_;
  const SessionConfig config_;
  const std::unique_ptr<FileReader> file_;
  const Bytes16 session_id_;
  const Bytes16 join_secret_;
  Lifetime life_;

  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);             // that the newest stream was begun with
  bool waits_for_token_ ABSL_GUARDED_BY(mutex_) = false;  // the server has refused that one
  // The first credential of munge that was refused since a server has taken a stream.
  std::optional<std::string> refused_credential_ ABSL_GUARDED_BY(mutex_);
  rpc::ServerRoute route_ ABSL_GUARDED_BY(mutex_);  // to the server of the cluster
  OwnerSearch search_ ABSL_GUARDED_BY(mutex_);
  std::optional<rpc::ServerRoute> asked_route_ ABSL_GUARDED_BY(mutex_);  // of its next question
  LackingOwner lacking_ ABSL_GUARDED_BY(mutex_);                         // by those questions
  rpc::ServerRoute lacking_route_ ABSL_GUARDED_BY(mutex_);               // to that one
  ServerRounds rounds_ ABSL_GUARDED_BY(mutex_);
  int calls_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // of the program, in Await()
  // Before the next attempt of a session that was never open.
  absl::Duration first_retry_ ABSL_GUARDED_BY(mutex_) = Link::kFirstRetryEvery;
  CutQueue queue_ ABSL_GUARDED_BY(mutex_);
  MetadataPages metadata_ ABSL_GUARDED_BY(mutex_);
  SessionRecord record_ ABSL_GUARDED_BY(mutex_);
  MirrorBase base_ ABSL_GUARDED_BY(mutex_);
  OutsideCut outside_ ABSL_GUARDED_BY(mutex_);
  Succession succession_ ABSL_GUARDED_BY(mutex_);
  Standing standing_ ABSL_GUARDED_BY(mutex_);
  ProgressReport progress_ ABSL_GUARDED_BY(mutex_);
  Link link_ ABSL_GUARDED_BY(mutex_);
  bool idle_ ABSL_GUARDED_BY(mutex_) = true;  // the sender found nothing to do
  ProgramClock program_clock_ ABSL_GUARDED_BY(mutex_);
  StreamClock stream_clock_ ABSL_GUARDED_BY(mutex_);
  AskedCut asked_ ABSL_GUARDED_BY(mutex_);
  CutTickets tickets_ ABSL_GUARDED_BY(mutex_);
  StreamParts parts_ ABSL_GUARDED_BY(mutex_);
  GroupProgress group_ ABSL_GUARDED_BY(mutex_);
  Closing closing_ ABSL_GUARDED_BY(mutex_);
  WriteWatch watch_ ABSL_GUARDED_BY(mutex_);
  WindowShare window_ ABSL_GUARDED_BY(mutex_);

  // The sender thread's own. The stream, of which life_ tells others, is owned by the host.
  std::string stream_target_;  // of the newest stream's server
  Pacing pacing_;
  Outbox outbox_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_SESSION_H_
