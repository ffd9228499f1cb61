// A session's stream: begun, answered, lost and resumed.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/remote_origin.h"
#include "base/strings.h"
#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"
#include "rpc/channel.h"
#include "rpc/frame_codec.h"
#include "rpc/tls_mismatch.h"

namespace h5mirror::vfd {
namespace {

v1::Intent IntentOf(Claim claim) {
  switch (claim) {
    case Claim::kContinue:
      return v1::INTENT_CONTINUE;
    case Claim::kCreate:
      return v1::INTENT_CREATE;
    case Claim::kReplace:
      return v1::INTENT_REPLACE;
    case Claim::kChange:
      return v1::INTENT_RESYNC;
    case Claim::kUpload:
      break;
  }
  return v1::INTENT_UPLOAD;
}

// Asked on the engine's thread, at most once a minute for all sessions. Takes at most a few
// milliseconds.
std::optional<std::string> TlsInTheWay(const rpc::ClientOptions& server,
                                       const absl::Status& status) {
  constexpr absl::Duration kQuestionMax = absl::Milliseconds(250);
  if (status.code() != absl::StatusCode::kUnavailable) return std::nullopt;
  return rpc::FindTlsMismatch(server, ToStd(status.message()), kQuestionMax);
}

}  // namespace

void Session::Claim() {
  const Succession::Phase before = succession_.Claim();
  if (config_.remote) return ClaimRemote();
  const std::optional<FoundRecord> found = record_.Find(config_.facts);
  base_.Claim(RelationOf(config_.facts, found ? std::optional(found->record) : std::nullopt));
  const Relation& relation = base_.relation();
  record_.Begin(found, relation, config_.facts);
  const std::optional<DirtyMap> map =
      found ? record_.FindMap(*found, relation, config_.facts) : std::nullopt;
  if (relation.claim == vfd::Claim::kContinue) {
    base_.SetLevel(record_.value().cut, record_.value().version);
  }
  if (before == Succession::Phase::kBegins && ClaimOutside(found)) return;
  if (map) TakeUp(*map);
  if (relation.claim == vfd::Claim::kUpload) {
    for (const Extent& extent : file_->DataExtents()) queue_.AddWrite(extent);
  }
  const bool saved = SaveProgress();  // And forgets the map, before the first byte changes.
  if (saved && !record_.has_former_place()) record_.ForgetElsewhere();
}

bool Session::WantsStream(absl::Time now) const {
  if (life_.done() || link_.is_refused() || standing_.is_diverged() ||
      succession_.has_predecessor())
    return false;
  const bool wanted = queue_.has_closed() || standing_.is_connecting();
  return link_.MayBegin(now, wanted);
}

grpc::ByteBuffer Session::OpenMessage(const StreamClaim& claim, uint64_t stream) {
  const Relation& relation = base_.relation();
  v1::MirrorFileRequest request;
  v1::OpenSession& open = *request.mutable_open();
  open.mutable_protocol()->set_oldest(rpc::kProtocolOldest);
  open.mutable_protocol()->set_newest(rpc::kProtocolNewest);
  open.set_name(config_.name);
  const Bytes16& file_id = record_.value().file_id;
  if (file_id != Bytes16{}) open.set_file_id(ToByteString(file_id));
  open.set_session_id(ToByteString(session_id_));
  open.set_stream(stream);
  if (config_.takes_parts) open.set_join_secret(ToByteString(join_secret_));
  // A local file of this path is another one.
  FillOrigin(config_.remote ? RemoteOriginOf(session_id_) : config_.real_path,
             open.mutable_origin());
  FillWriter(config_.program, open.mutable_writer());
  // A file that is created again has nothing of the one before, whose cut may still be the server's
  // newest: resumed from there it would be a mixture of both.
  const bool goes_on = relation.claim != vfd::Claim::kCreate || base_.sends_inherited();
  if (base_.followed_session() != Bytes16{} && (goes_on || !claim.resume)) {
    open.set_predecessor_session_id(ToByteString(base_.followed_session()));
  }
  if (claim.resume) open.set_base_cut_newest(base_.cut_seen());
  open.set_intent(claim.resume ? v1::INTENT_RESUME : IntentOf(relation.claim));
  open.set_base_cut(claim.base_cut);
  if (!claim.resume && relation.base_seq != 0) {
    open.mutable_base_barrier()->set_session_id(ToByteString(relation.base_session));
    open.mutable_base_barrier()->set_seq(relation.base_seq);
  }
  if (!claim.resume && relation.moved_cut != 0) {
    open.mutable_moved_base()->set_cut(relation.moved_cut);
    FillLocalStat(relation.moved_stat, open.mutable_moved_base()->mutable_local());
  }
  const absl::StatusOr<FileStat> stat = file_->Stat();
  if (stat.ok()) open.set_size_bytes(stat->size_bytes);
  if (!claim.resume) open.set_renamed_from(relation.renamed_from);
  open.set_mode_bits(config_.mode_bits);
  open.set_page_size_bytes(config_.page_size_bytes);
  FillTime(host_.TimeOfDay(), open.mutable_client_time());
  FillDuration(config_.version_every, open.mutable_version_every());
  FillDuration(config_.version_min_interval, open.mutable_version_min_interval());
  return rpc::EncodeRequest(request);
}

void Session::StartStream() {
  absl::MutexLock lock(&mutex_);
  if (!succession_.is_claimed()) Claim();
  if (IsAnothersFile()) {  // Which brings what is missing here.
    tickets_.LoseAll();
    return FinishSession();
  }
  const StreamClaim claim = base_.NextClaim(queue_.last_seq(), link_.ever_opened());
  const uint64_t stream = link_.Begin(claim, host_.Now());
  stream_clock_.Begin(host_.Now());  // No progress for the program: eight attempts are no answer.
  metadata_.TellAgain();
  parts_.Begin();
  search_.Begin();
  asked_route_.reset();
  lacking_.OnOtherwise();
  outbox_.Forget();
  outbox_.Push(OpenMessage(claim, stream), Outbox::Kind::kData);
  TakeNewToken();
  const rpc::ClientOptions server = ServerNow();
  stream_target_ = server.target;
  outbox_.Begin(host_.StartStream(server, this));
  life_.SetStreaming(true);
}

void Session::OnResponse(const v1::MirrorFileResponse& response) {
  absl::MutexLock lock(&mutex_);
  Progress();
  stream_clock_.OnAnswer(program_clock_.progress_time());
  search_.OnAnswer(program_clock_.progress_time());
  host_.SetSuspect(config_.server.target, false);
  if (life_.done() || link_.is_cancelled()) return;
  switch (response.response_case()) {
    case v1::MirrorFileResponse::kOpened:
      OnOpened(response.opened());
      break;
    case v1::MirrorFileResponse::kCutVisible:
      tickets_.OnVisible(response.cut_visible().seq());
      parts_.OnVisible();
      rounds_.OnAck();
      base_.OnVisible(response.cut_visible().cut());
      if (life_.released() && tickets_.IsFinalAcked(H5M_ACK_APPLIED)) {
        host_.WakeSuccessors(*this);
      }
      break;
    case v1::MirrorFileResponse::kCutDurable:
      OnDurable(response.cut_durable());
      break;
    case v1::MirrorFileResponse::kPartTaken:
    case v1::MirrorFileResponse::RESPONSE_NOT_SET:
      break;
  }
}

void Session::OnOpened(const v1::SessionOpened& opened) {
  // Where it is not taken, the stream ends by itself.
  if (opened.relation() == v1::RELATION_DIVERGED) return OnDiverged(opened);
  if (opened.relation() == v1::RELATION_BUSY) return link_.OnBusy(opened.state());
  TakeBase(opened);
  ForgetRename();
  if (link_.resumes() || base_.took_up_map() || standing_.is_behind()) {
    progress_.BeginResync(queue_.pending_bytes(), queue_.last_seq(), queue_.closed_cuts(),
                          host_.Now());
  }
  link_.OnOpened();
  parts_.OnOpened(
      opened.token(), opened.takes_parts(),
      route_.is_first() ? StreamParts::Server::kConfigured : StreamParts::Server::kElsewhere);
  route_.OnAnswer();
  rounds_.OnOpened(host_.Now());
  search_.OnOpened();
  first_retry_ = Link::kFirstRetryEvery;
  refused_credential_.reset();
  standing_.OnOpened();
  progress_.OnOpened(host_.Now());
  base_.OnOpened();
  idle_ = false;
  stream_clock_.OnOpened(opened.lease_ttl_ms() > 0 ? absl::Milliseconds(opened.lease_ttl_ms())
                                                   : absl::InfiniteDuration());
  const absl::StatusOr<Bytes16> file_id = FromByteString(opened.file_id());
  if (file_id.ok() && record_.SetFileId(*file_id)) SaveProgress();
  Notify("opened", "", false);
  host_.Wake(this);
}

// The server's newest cut is not the base of this session, or only seems not to be.
void Session::OnDiverged(const v1::SessionOpened& opened) {
  if (base_.follows_cut() && !link_.resumes()) {  // It is begun again with all of it.
    return link_.OnAnswer(Link::Answer::kLostBase);
  }
  // A file that the server has under the new name is another file, because no rename reached it.
  // Nor is this the moved server of the record.
  const Relation& relation = base_.relation();
  const bool unknown_there =
      opened.last_cut() == 0 && (!relation.renamed_from.empty() || relation.moved_cut != 0);
  if (unknown_there && !link_.resumes()) {  // It is begun again as that of a new file.
    return link_.OnAnswer(Link::Answer::kUnknownFile);
  }
  if (IsAnothersFile()) return;  // It was opened just now.
  if (config_.remote) return OnMovedOn(opened);
  standing_.Diverge(absl::StrCat(
      config_.real_path, " and its mirror ", config_.name, " on ", config_.server.server,
      " have diverged: ", opened.state(), "; here the local file is ",
      relation.claim == vfd::Claim::kCreate ? "new" : "another state",
      ". Nothing is overwritten; the program goes on locally. Decide with: h5mirror ",
      // Names the mirror if there are several.
      config_.record_tag.empty() ? "" : absl::StrCat("--server ", config_.server.server, " "),
      "resync --from local|remote ", config_.real_path,
      " (both sides are kept), or h5mirror recover | push | adopt ", config_.real_path));
  Notify("diverged", standing_.detail(), true);
  SaveRecord(RecordState::kDiverged);
  LoseCuts();
}

void Session::TakeBase(const v1::SessionOpened& opened) {
  if (opened.relation() == v1::RELATION_NEW) {
    if (link_.resumes() && base_.base_cut() != 0) BeginAgain();
    base_.OnNew();
  } else if (!link_.resumes()) {
    if (base_.OnTaken(opened.last_cut(), opened.durable_cut())) queue_.ForgetDurable(0);
  } else if (opened.durable_barrier_seq() != 0) {
    // Else the newest durable cut is not this session's: maybe of the generation before.
    outside_.Forget();
    tickets_.OnDurable(opened.durable_barrier_seq());
    group_.OnDurable(tickets_.durable_seq());
    base_.OnResumed(opened.durable_cut());
  }
  if (opened.relation() == v1::RELATION_MATCH) base_.OnVisible(opened.last_cut());
}

// The server has nothing, although it had acknowledged the dirty map's base as durable: its disk
// was replaced. So the whole file goes with the next cut. Waiting cuts join that cut, because the
// bytes around them can only be read as they are now.
void Session::BeginAgain() {
  SendAgain();
  for (const Extent& extent : file_->DataExtents()) queue_.AddWrite(extent);
  tickets_.LoseAll();
  if (!tickets_.sealed() || (life_.released() && !FileIsAsClosed())) return;
  CloseFinalCut();
}

void Session::CloseFinalCut() {
  CloseCut(CutKind::kCommit, config_.comment);
  if (life_.released()) SaveProgress();
}

// The server has it under its new name, or as a new file: in both cases what the old path's record
// says is over.
void Session::ForgetRename() {
  base_.ForgetRename();
  if (!record_.is_renamed()) return;
  record_.ForgetRename();
  SaveProgress();
  record_.ForgetFormerPlace();
}

void Session::OnDurable(const v1::CutDurable& durable) {
  rounds_.OnAck();
  lacking_.OnOtherwise();  // Its next owner has it.
  tickets_.OnDurable(durable.seq());
  group_.OnDurable(tickets_.durable_seq());
  base_.OnDurable(durable.cut(), durable.version());
  outside_.OnDurable(tickets_);
  queue_.ForgetDurable(tickets_.durable_seq());
  if (progress_.OnDurable(tickets_.durable_seq())) Notify("resynced", "", false);
  tickets_.Forget();
  if (life_.released() && tickets_.IsFinalAcked(H5M_ACK_DURABLE)) FinishSession();
}

void Session::OnEnded(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  ForgetStream();
  if (gone()) host_.WakeSuccessors(*this);
  if (link_.is_cancelled()) return;  // LoseStream() has been here.
  const bool was_taken = link_.is_open();
  link_.End();
  if (standing_.is_diverged() && life_.released()) FinishSession();
  if (life_.done() || standing_.is_diverged()) {
    host_.Wake(this);
    return;
  }
  if (tickets_.IsFinalAcked(H5M_ACK_DURABLE)) return;
  if (link_.answer() == Link::Answer::kUnknownFile) return BeginAsNewFile();
  // A server that had taken the stream belongs to the file's cluster, so its refusal is final.
  if (FollowElsewhere(status) || (!was_taken && AskOthersFirst(status))) return;
  const auto mismatch = link_.ever_opened() ? std::nullopt : TlsInTheWay(ServerNow(), status);
  if (mismatch) {
    link_.Refuse();
    return LoseStream(*mismatch, Retry::kNever);
  }
  if (!TryFirstAgain(status)) LoseEnded(status);
}

// The server knows no file that was renamed, or that has moved to it: this one is new there.
void Session::BeginAsNewFile() {
  base_.BeginAsNewFile();
  record_.BeginAsNewFile();
  BeginAgain();
  link_.RetryAt(host_.Now());
  host_.Wake(this);
}

void Session::LoseStream(const std::string& why, Retry retry) {
  link_.Lose(host_.Now());
  progress_.StopResync();
  LoseCuts();
  if (life_.superseded()) return FinishSession();
  if (LeavesItToFollower()) {
    // The program has opened the file again, and that session takes this one's place: it gets the
    // time to do so from now on, however long this one has hung.
    stream_clock_.Excuse(host_.Now());
    GoBehind(why, true);
    host_.WakeSuccessors(*this);
    return;
  }
  const bool anothers = IsAnothersFile();
  const bool again = !anothers && TakeFinalAttempt(retry);
  const bool at_once = retry == Retry::kAtOnce && (again || !tickets_.sealed());
  GoBehind(why, again || at_once || anothers);
  if (at_once) {
    link_.Hurry();
    host_.Wake(this);
  }
  if (again) {
    CloseFinalCut();
    link_.RetryAt(host_.Now() + Link::kFinalRetryEvery);
    return;
  }
  if (life_.released() && !WaitsToClaim()) FinishSession();
  // A program that only now and then flushes is not waited for: the timer brings its last cut.
  if (!LostNewestCut() || anothers) return;
  CloseCut(CutKind::kTick, "");
  // Many programs may have begun while their server was away, and it may be so for days.
  const bool may_rest = !link_.ever_opened() && !link_.is_full() && !program_clock_.rides_out() &&
                        !route_.IsOfCluster(config_.server);
  if (may_rest) link_.Rest(host_.Now());
}

bool Session::LeavesItToFollower() const {
  return life_.released() && tickets_.sealed() && life_.has_follower() && !link_.is_refused();
}

// The file is as the program's last flush left it, and the server may not have that.
bool Session::LostNewestCut() const {
  // A server that was away at the first write may be there soon, as one that goes away later. Where
  // another writer has the file, only the program's next flush asks again.
  const bool may_come_back = link_.ever_opened() || !link_.was_busy() || link_.is_full() ||
                             route_.IsOfCluster(config_.server);
  return watch_.is_at_cut() && !life_.released() && may_come_back && !tickets_.sealed() &&
         !link_.is_refused() && (!queue_.open_changes().empty() || group_.LacksNewest());
}

bool Session::FileIsAsClosed() const {
  const absl::StatusOr<FileStat> stat = file_->Stat();
  return stat.ok() && closing_.IsAsClosed(*stat);
}

void Session::OnTimer() {
  bool pump = false;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = host_.Now();
    FollowPredecessor();
    const bool all_durable = tickets_.durable_seq() >= queue_.last_seq();
    progress_.NotePending(queue_.pending_bytes() > 0 || !all_durable, now);
    pump = KeepInTouch(now);
    if (pacing_.held_back() && link_.is_open() && outbox_.is_idle()) {
      Progress();  // The client itself waits, until the bandwidth allows more.
      stream_clock_.Excuse(now);
      pump = true;
    }
    GiveUpHung(now);
    SearchServer(now);
    if (FollowerIsGone(now)) FinishSession();
    if (waits_for_token_ && TakeNewToken()) GoOnWithToken();
    if (link_.is_none() && WantsStream(now)) pump = true;
    if (life_.done() && outbox_.has_stream()) pump = true;
  }
  if (pump) Pump();
}

// Makes the reports and keep-alives that are due. True: there are some to send.
bool Session::KeepInTouch(absl::Time now) {
  const bool reports = ReportIsDue(now);
  if (reports) outbox_.Push(ReportMessage(now), Outbox::Kind::kKeepAlive);
  const bool keeps_alive =
      link_.is_open() && outbox_.is_idle() && stream_clock_.KeepAliveIsDue(now);
  if (keeps_alive) {
    v1::MirrorFileRequest request;
    request.mutable_keep_alive();
    outbox_.Push(rpc::EncodeRequest(request), Outbox::Kind::kKeepAlive);
  }
  return reports || keeps_alive;
}

void Session::GiveUpHung(absl::Time now) {
  // A closed session waits for its last answer, and another one went on without.
  const absl::Time owed_since =
      life_.released() ? program_clock_.close_time() : stream_clock_.owed_since();
  // Nobody waits for a connection attempt that hangs, but the next one needs it gone.
  const bool opening_hangs = link_.is_opening() && stream_clock_.IsHung(now);
  if (opening_hangs) {
    host_.SetSuspect(config_.server.target, true);
  } else if (link_.is_open() && !life_.done() && stream_clock_.IsHung(now, owed_since)) {
    stream_clock_.OnHung(now, !outbox_.is_writable());
  } else {
    return;
  }
  CutOff(absl::StrCat("no answer within ", absl::FormatDuration(stream_clock_.HungAfter())),
         AwaitsTakeover() ? Retry::kTakeover : Retry::kNever);
}

// The next session of the file had time to take over, and has not.
bool Session::FollowerIsGone(absl::Time now) const {
  const absl::Time since = std::max(program_clock_.progress_time(), stream_clock_.flow_time());
  return life_.released() && life_.has_follower() && link_.is_none() && !WaitsToClaim() &&
         now - since > config_.timeout;
}

void Session::LeaveStream() {
  absl::MutexLock lock(&mutex_);
  if (!outbox_.has_stream()) return;
  Stream* stream = ForgetStream();
  stream->Abandon();
  stream->HalfClose();
  if (life_.done()) return;
  const bool was_there = link_.Leave();
  LoseCuts();
  if (life_.superseded()) return FinishSession();
  if (was_there && LostNewestCut() && !IsAnothersFile()) CloseCut(CutKind::kTick, "");
  if (!tickets_.sealed() || !was_there) return;
  if (FileIsAsClosed()) return CloseFinalCut();
  // The bytes to send again may belong to a newer session of the file, or to another program.
  GoBehind("the file was changed since it was closed", true);
  if (life_.released() && life_.has_follower()) return host_.WakeSuccessors(*this);
  if (life_.released() && !WaitsToClaim()) FinishSession();
}

void Session::GiveUp() {
  absl::MutexLock lock(&mutex_);
  if (life_.released()) FinishAlone();
}

// Without its server, and without waiting for the session before it.
void Session::FinishAlone() {
  if (life_.done()) return;
  FollowPredecessor(Handing::kNow);
  if (!succession_.is_claimed() && tickets_.sealed()) Claim();
  FinishSession();
}

}  // namespace h5mirror::vfd
