// A session's stream: begun, answered, lost and resumed.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/remote_origin.h"
#include "base/server_list.h"
#include "base/strings.h"
#include "client_vfd/session/identity.h"
#include "client_vfd/session/session.h"
#include "rpc/channel.h"
#include "rpc/frame_codec.h"
#include "rpc/tls_mismatch.h"

namespace h5mirror::vfd {
namespace {

// Between two attempts to reach a server.
constexpr absl::Duration kRetryEvery = absl::Milliseconds(500);
constexpr absl::Duration kFirstRetryEvery = absl::Milliseconds(100);
// At the last barrier, when the server was there before: it may just be restarting.
constexpr absl::Duration kFinalRetryEvery = absl::Milliseconds(200);
constexpr int kFinalAttemptsMax = 8;
const absl::Duration kRestartPatience = kFinalAttemptsMax * kFinalRetryEvery;

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

// Errors that asking again does not change.
bool IsRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// A server that was there has given the connection up before it saw this stream: it stops, or has
// too little memory for a connection on which nothing happens. The next attempt gets another.
bool IsSentAway(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable &&
         absl::StrContains(status.message(), "GOAWAY");
}

// It is asked on the engine's thread, at most once a minute for all sessions, and answers within a
// few milliseconds or not at all.
std::optional<std::string> TlsInTheWay(const rpc::ClientOptions& server,
                                       const absl::Status& status) {
  constexpr absl::Duration kQuestionMax = absl::Milliseconds(250);
  if (status.code() != absl::StatusCode::kUnavailable) return std::nullopt;
  return rpc::FindTlsMismatch(server, ToStd(status.message()), kQuestionMax);
}

}  // namespace

// The file's record; where it has none and was not made by this open, that of the file which it was
// before it was renamed.
std::optional<FoundRecord> Session::FindRecord() {
  absl::StatusOr<FoundRecord> found = TakeRecordOf(place_, config_.facts.server);
  if (found.ok()) return *std::move(found);
  if (!absl::IsNotFound(found.status()) || config_.facts.created) return std::nullopt;
  absl::StatusOr<FoundRecord> former =
      FindFormerRecord(place_, config_.facts.server, config_.facts.stat_at_open);
  if (!former.ok()) return std::nullopt;
  former_place_ = former->place;
  return *std::move(former);
}

void Session::Claim() {
  claimed_ = true;
  if (config_.remote) return ClaimRemote();
  const std::optional<FoundRecord> found = FindRecord();
  const auto record = found ? std::optional(found->record) : std::nullopt;
  relation_ = RelationOf(config_.facts, record);
  const bool known = record && IsSameServer(record->server, config_.facts.server);
  const bool is_moved = relation_.moved_cut != 0;
  if (is_moved ||
      (known && (record->name == config_.facts.name || !relation_.renamed_from.empty()))) {
    record_ = *record;
    record_.renamed_from = relation_.renamed_from;
  } else {
    record_.stat = config_.facts.stat_at_open;
  }
  record_.server = config_.facts.server;
  record_.name = config_.facts.name;
  const std::optional<DirtyMap> map = found ? FindDirtyMap({found->place, record_}) : std::nullopt;
  base_cut_ = FirstBase(relation_);
  if (relation_.claim == vfd::Claim::kContinue) {
    cut_ = record_.cut;
    version_ = record_.version;
  }
  if (ClaimOutside(found)) return;
  if (map) TakeUp(*map);
  if (relation_.claim == vfd::Claim::kUpload) {
    for (const Extent& extent : file_->DataExtents()) queue_.AddWrite(extent);
  }
  const bool saved = SaveProgress();  // And forgets the map, before the first byte changes.
  // It lay where it does while the file has another number of mirrors; there it is no more.
  if (saved && known && !former_place_ && found->place.tag != place_.tag) {
    RemoveLocalRecord(found->place);
  }
}

bool Session::WantsStream(absl::Time now) const {
  if (done_ || refused_ || standing_.is_diverged() || predecessor_) return false;
  const bool wanted = queue_.has_closed() || standing_.is_connecting() || opening_is_awaited_;
  return hurry_ || (now >= retry_time_ && wanted);
}

StreamClaim Session::NextClaim() const {
  return StreamClaimOf(
      relation_, {queue_.last_seq(), ever_opened_, base_cut_, sends_inherited_, begins_again_});
}

grpc::ByteBuffer Session::OpenMessage() {
  v1::MirrorFileRequest request;
  v1::OpenSession& open = *request.mutable_open();
  open.mutable_protocol()->set_oldest(rpc::kProtocolOldest);
  open.mutable_protocol()->set_newest(rpc::kProtocolNewest);
  open.set_name(config_.name);
  if (record_.file_id != Bytes16{}) open.set_file_id(ToByteString(record_.file_id));
  open.set_session_id(ToByteString(session_id_));
  open.set_stream(++stream_count_);
  // A local file of this path is another one.
  FillOrigin(config_.remote ? RemoteOriginOf(session_id_) : config_.real_path,
             open.mutable_origin());
  FillWriter(config_.program, open.mutable_writer());
  const StreamClaim claim = NextClaim();
  // A file that is created again has nothing of the one before, whose cut may still be the server's
  // newest: resumed from there it would be a mixture of both.
  const bool goes_on = relation_.claim != vfd::Claim::kCreate || sends_inherited_;
  if (followed_session_ != Bytes16{} && (goes_on || !claim.resume)) {
    open.set_predecessor_session_id(ToByteString(followed_session_));
  }
  if (claim.resume) open.set_base_cut_newest(cut_seen_);
  open.set_intent(claim.resume ? v1::INTENT_RESUME : IntentOf(relation_.claim));
  open.set_base_cut(claim.base_cut);
  if (!claim.resume && relation_.base_seq != 0) {
    open.mutable_base_barrier()->set_session_id(ToByteString(relation_.base_session));
    open.mutable_base_barrier()->set_seq(relation_.base_seq);
  }
  if (!claim.resume && relation_.moved_cut != 0) {
    open.mutable_moved_base()->set_cut(relation_.moved_cut);
    FillLocalStat(relation_.moved_stat, open.mutable_moved_base()->mutable_local());
  }
  const absl::StatusOr<FileStat> stat = file_->Stat();
  if (stat.ok()) open.set_size_bytes(stat->size_bytes);
  if (!claim.resume) open.set_renamed_from(relation_.renamed_from);
  open.set_mode_bits(config_.mode_bits);
  open.set_page_size_bytes(config_.page_size_bytes);
  FillTime(host_.TimeOfDay(), open.mutable_client_time());
  FillDuration(config_.version_every, open.mutable_version_every());
  FillDuration(config_.version_min_interval, open.mutable_version_min_interval());
  resuming_ = claim.resume;
  may_send_ = claim.may_send_early;
  return rpc::EncodeRequest(request);
}

void Session::StartStream() {
  absl::MutexLock lock(&mutex_);
  if (!claimed_) Claim();
  if (IsAnothersFile()) {  // Which brings what is missing here.
    tickets_.LoseAll();
    return FinishSession();
  }
  hurry_ = false;
  cancel_ = false;
  retry_time_ = host_.Now() + kRetryEvery;
  link_ = Link::kOpening;
  stream_clock_.Begin(host_.Now());  // No progress for the program: eight attempts are no answer.
  metadata_.TellAgain();
  outbox_.clear();
  outbox_.push_back({OpenMessage(), Outgoing::Kind::kData});
  writable_ = false;
  stream_ = host_.StartStream(config_.server, this);
  streaming_ = true;
}

void Session::OnResponse(const v1::MirrorFileResponse& response) {
  absl::MutexLock lock(&mutex_);
  Progress();
  stream_clock_.OnAnswer(program_clock_.progress_time());
  host_.SetSuspect(config_.server.target, false);
  if (done_ || cancel_) return;
  switch (response.response_case()) {
    case v1::MirrorFileResponse::kOpened:
      OnOpened(response.opened());
      break;
    case v1::MirrorFileResponse::kCutVisible:
      tickets_.OnVisible(response.cut_visible().seq());
      cut_seen_ = std::max(cut_seen_, response.cut_visible().cut());
      if (released_ && tickets_.IsFinalAcked(H5M_ACK_APPLIED)) {
        host_.WakeSuccessors(*this);
      }
      break;
    case v1::MirrorFileResponse::kCutDurable:
      OnDurable(response.cut_durable());
      break;
    case v1::MirrorFileResponse::RESPONSE_NOT_SET:
      break;
  }
}

void Session::OnOpened(const v1::SessionOpened& opened) {
  if (opened.relation() == v1::RELATION_DIVERGED && follows_cut_ && !resuming_) {
    lost_base_ = true;  // The stream ends by itself, and is begun again with all of it.
    return;
  }
  // What the server may have under the new name is another file: nothing was renamed to it. Nor is
  // it the server of the record that has moved.
  const bool unknown_there =
      opened.last_cut() == 0 && (!relation_.renamed_from.empty() || relation_.moved_cut != 0);
  if (opened.relation() == v1::RELATION_DIVERGED && unknown_there && !resuming_) {
    begins_as_new_ = true;  // The stream ends by itself, and is begun again as that of a new file.
    return;
  }
  if (opened.relation() == v1::RELATION_DIVERGED && IsAnothersFile()) {
    return;  // It was opened just now; the stream ends by itself.
  }
  if (opened.relation() == v1::RELATION_DIVERGED && config_.remote) return OnMovedOn(opened);
  if (opened.relation() == v1::RELATION_DIVERGED) {
    standing_.Diverge(absl::StrCat(
        config_.real_path, " and its mirror ", config_.name, " on ", config_.server.server,
        " have diverged: ", opened.state(), "; here the local file is ",
        relation_.claim == vfd::Claim::kCreate ? "new" : "another state",
        ". Nothing is overwritten; the program goes on locally. Decide with: h5mirror ",
        // Which of several mirrors.
        config_.record_tag.empty() ? "" : absl::StrCat("--server ", config_.server.server, " "),
        "resync --from local|remote ", config_.real_path,
        " (both sides are kept), or h5mirror recover | push | adopt ", config_.real_path));
    Notify("diverged", standing_.detail(), true);
    SaveRecord(RecordState::kDiverged);
    SendAgain();
    tickets_.LoseAll();
    return;
  }
  if (opened.relation() == v1::RELATION_BUSY) {
    busy_ = opened.state();
    return;  // The stream ends by itself.
  }
  TakeBase(opened);
  ForgetRename();
  link_ = Link::kOpen;
  if (resuming_ || took_up_map_ || standing_.is_behind()) BeginResync();
  standing_.OnOpened();
  progress_.OnOpened(host_.Now());
  begins_again_ = false;
  ever_opened_ = true;
  may_send_ = true;
  idle_ = false;
  stream_clock_.OnOpened(opened.lease_ttl_ms() > 0 ? absl::Milliseconds(opened.lease_ttl_ms())
                                                   : absl::InfiniteDuration());
  const absl::StatusOr<Bytes16> file_id = FromByteString(opened.file_id());
  if (file_id.ok() && *file_id != record_.file_id) {
    record_.file_id = *file_id;
    SaveProgress();
  }
  Notify("opened", "", false);
  host_.Wake(this);
}

void Session::TakeBase(const v1::SessionOpened& opened) {
  if (opened.relation() == v1::RELATION_NEW) {
    if (resuming_ && base_cut_ != 0) BeginAgain();
    base_cut_ = 0;
    cut_seen_ = 0;
  } else if (!resuming_) {
    // Equal to the newest cut. Should the server lose it again, what it held is among the changes
    // that came from a predecessor; where it is durable, they are needed no more.
    if (follows_cut_ && opened.durable_cut() == opened.last_cut()) {
      queue_.ForgetDurable(0);
      inherited_from_ = 0;
      follows_cut_ = false;
    }
    if (!follows_cut_) base_cut_ = opened.last_cut();
  } else if (opened.durable_barrier_seq() != 0) {
    // Else the newest durable cut is not this session's: maybe of the generation before.
    outside_ticket_ = 0;
    tickets_.OnDurable(opened.durable_barrier_seq());
    base_cut_ = cut_ = opened.durable_cut();
  }
  if (opened.relation() == v1::RELATION_MATCH) cut_seen_ = std::max(cut_seen_, opened.last_cut());
}

// The server starts from nothing where the dirty map is the difference to a cut that it once said
// was durable (its disk was replaced): all of the file goes with the next cut. Cuts that wait to be
// sent are part of it, since what they lack is only known as of now.
void Session::BeginAgain() {
  SendAgain();
  for (const Extent& extent : file_->DataExtents()) queue_.AddWrite(extent);
  tickets_.LoseAll();
  if (!tickets_.sealed() || (released_ && !FileIsAsClosed())) return;
  CloseCut(CutKind::kCommit, config_.comment);
  if (released_) SaveProgress();
}

// The server has it under its new name, or as a new file: in both cases what the old path's record
// says is over.
void Session::ForgetRename() {
  relation_.renamed_from.clear();
  if (record_.renamed_from.empty() && !former_place_) return;
  record_.renamed_from.clear();
  SaveProgress();
  if (former_place_) RemoveLocalRecord(*former_place_);
  former_place_.reset();
}

void Session::OnDurable(const v1::CutDurable& durable) {
  tickets_.OnDurable(durable.seq());
  base_cut_ = cut_ = durable.cut();
  inherited_from_ = 0;
  follows_cut_ = false;
  sends_inherited_ = false;
  took_up_map_ = false;
  cut_seen_ = std::max(cut_seen_, cut_);
  if (durable.version() != 0) version_ = durable.version();
  if (tickets_.IsLost(outside_ticket_) || tickets_.Acked(outside_ticket_, H5M_ACK_DURABLE)) {
    outside_ticket_ = 0;
  }
  queue_.ForgetDurable(tickets_.durable_seq());
  if (progress_.OnDurable(tickets_.durable_seq())) Notify("resynced", "", false);
  tickets_.Forget();
  if (released_ && tickets_.IsFinalAcked(H5M_ACK_DURABLE)) FinishSession();
}

void Session::OnEnded(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  stream_ = nullptr;
  streaming_ = false;
  writable_ = false;
  outbox_.clear();
  if (gone()) host_.WakeSuccessors(*this);
  if (cancel_) return;  // LoseStream() has been here.
  link_ = Link::kNone;
  if (standing_.is_diverged() && released_) FinishSession();
  if (done_ || standing_.is_diverged()) {
    host_.Wake(this);
    return;
  }
  if (tickets_.IsFinalAcked(H5M_ACK_DURABLE)) return;
  if (std::exchange(begins_as_new_, false)) {
    relation_ = Relation{};
    record_.renamed_from.clear();
    record_.file_id = {};
    former_place_.reset();
    base_cut_ = cut_ = version_ = 0;
    BeginAgain();
    retry_time_ = host_.Now();
    host_.Wake(this);
    return;
  }
  const auto mismatch = ever_opened_ ? std::nullopt : TlsInTheWay(config_.server, status);
  if (mismatch) {
    refused_ = true;
    return LoseStream(*mismatch, Retry::kNever);
  }
  if (TryFirstAgain(status)) return;
  std::string why(status.message());
  // The server was there just now, maybe for the session that this one followed.
  const bool just_lost =
      inherited_from_ > 0 && host_.Now() - standing_.behind_since() < kRestartPatience;
  bool retry_final = ever_opened_ || follows_cut_ || just_lost || IsSentAway(status);
  if (std::exchange(lost_base_, false)) {
    return LoseStream("the server has lost the newest cut", Retry::kAtOnce);
  }
  if (!busy_.empty()) {
    retry_final = true;  // It may be closing just now.
    why = absl::StrCat("another writer holds it: ", std::exchange(busy_, ""));
    was_busy_ = true;
  } else if (IsRefusal(status)) {
    refused_ = true;
  } else if (status.code() == absl::StatusCode::kUnavailable) {
    host_.DropChannel(config_.server);
  }
  LoseStream(why.empty() ? "the stream ended" : why,
             retry_final ? Retry::kFinalCut : Retry::kNever);
}

// A connection that fails before a barrier was sent on it, as a TLS handshake on a machine under
// load may, costs no more than another attempt.
bool Session::TryFirstAgain(const absl::Status& status) {
  // Nobody listens: that is an answer.
  const bool refused = absl::StrContains(status.message(), "Connection refused") ||
                       absl::StrContains(status.message(), "No such file");
  if (ever_opened_ || !busy_.empty() || refused ||
      status.code() != absl::StatusCode::kUnavailable || !standing_.is_connecting() ||
      host_.Now() - attach_time_ > config_.timeout - kRetryEvery || !queue_.TakeBack()) {
    return false;
  }
  host_.DropChannel(config_.server);
  may_send_ = false;
  retry_time_ = host_.Now() + kFirstRetryEvery;
  Notify("retry", absl::StrCat(config_.real_path, ": ", status.message(), "; trying again"), false);
  return true;
}

void Session::LoseStream(const std::string& why, Retry retry) {
  link_ = Link::kNone;
  may_send_ = false;
  progress_.StopResync();
  SendAgain();
  tickets_.LoseAll();
  retry_time_ = host_.Now() + kRetryEvery;
  if (superseded_) return FinishSession();
  if (released_ && tickets_.sealed() && follower_waits_ && !refused_) {
    // The program has opened the file again, and that session takes this one's place: it gets the
    // time to do so from now on, however long this one has hung.
    stream_clock_.Excuse(host_.Now());
    GoBehind(why, true);
    host_.WakeSuccessors(*this);
    return;
  }
  const bool anothers = IsAnothersFile();
  const bool again = tickets_.sealed() && !refused_ && retry != Retry::kNever && !anothers &&
                     ++final_attempts_ <= kFinalAttemptsMax && FileIsAsClosed();
  const bool at_once = retry == Retry::kAtOnce && (again || !tickets_.sealed());
  GoBehind(why, again || at_once || anothers);
  if (at_once) {
    hurry_ = true;
    host_.Wake(this);
  }
  if (!again) {
    if (released_ && !WaitsToClaim()) FinishSession();
    // A program that only now and then flushes is not waited for: the timer brings its last cut.
    if (LostNewestCut() && !anothers) CloseCut(CutKind::kTick, "");
    return;
  }
  CloseCut(CutKind::kCommit, config_.comment);
  if (released_) SaveProgress();
  retry_time_ = host_.Now() + kFinalRetryEvery;
}

// The file is as the program's last flush left it, and the server may not have that.
bool Session::LostNewestCut() const {
  return is_at_cut_ && !released_ && ever_opened_ && !tickets_.sealed() && !refused_ &&
         !queue_.open_changes().empty() && child_writes_->load() == child_writes_seen_;
}

bool Session::FileIsAsClosed() const {
  const absl::StatusOr<FileStat> stat = file_->Stat();
  return stat.ok() && (!final_end_.local || *stat == *final_end_.local);
}

void Session::OnTimer() {
  bool pump = false;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = host_.Now();
    FollowPredecessor();
    NotePending(now);
    if (ReportIsDue(now)) {
      outbox_.push_back({ReportMessage(now), Outgoing::Kind::kKeepAlive});
      pump = true;
    }
    if (link_ == Link::kOpen && outbox_.empty() && writable_ && stream_clock_.KeepAliveIsDue(now)) {
      v1::MirrorFileRequest request;
      request.mutable_keep_alive();
      outbox_.push_back({rpc::EncodeRequest(request), Outgoing::Kind::kKeepAlive});
      pump = true;
    }
    // Nobody waits for a connection attempt that hangs, but the next one needs it gone.
    if (link_ == Link::kOpening && stream_clock_.IsHung(now)) {
      host_.SetSuspect(config_.server.target, true);
      CutOff(absl::StrCat("no answer within ", absl::FormatDuration(stream_clock_.HungAfter())));
    }
    if (held_back_ && link_ == Link::kOpen && writable_ && outbox_.empty()) {
      Progress();  // It is we who wait, for the bandwidth to allow more.
      stream_clock_.Excuse(now);
      pump = true;
    }
    // A closed session that waits for its last acknowledgement, or one that went on without.
    if (IsHung(now)) {
      stream_clock_.OnHung(now, !writable_);
      CutOff(absl::StrCat("no answer within ", absl::FormatDuration(stream_clock_.HungAfter())));
    }
    if (released_ && follower_waits_ && link_ == Link::kNone && !WaitsToClaim() &&
        now - std::max(program_clock_.progress_time(), stream_clock_.flow_time()) >
            config_.timeout) {
      FinishSession();  // The follower has ended without it.
    }
    if (link_ == Link::kNone && WantsStream(now)) pump = true;
    if (done_ && stream_ != nullptr) pump = true;
  }
  if (pump) Pump();
}

void Session::LeaveStream() {
  absl::MutexLock lock(&mutex_);
  if (stream_ == nullptr) return;
  Stream* stream = std::exchange(stream_, nullptr);
  stream->Abandon();
  stream->HalfClose();
  streaming_ = false;
  writable_ = false;
  outbox_.clear();
  if (done_) return;
  const bool mirroring = link_ == Link::kOpen || link_ == Link::kOpening;
  link_ = Link::kNone;
  may_send_ = false;
  SendAgain();
  tickets_.LoseAll();
  if (superseded_) return FinishSession();
  hurry_ = mirroring;
  if (mirroring && LostNewestCut() && !IsAnothersFile()) CloseCut(CutKind::kTick, "");
  if (!tickets_.sealed() || !mirroring) return;
  if (FileIsAsClosed()) {
    CloseCut(CutKind::kCommit, config_.comment);
    if (released_) SaveProgress();
    return;
  }
  // What is to be sent again is of the session that has opened it since, or another program's.
  GoBehind("the file was changed since it was closed", true);
  if (released_ && follower_waits_) return host_.WakeSuccessors(*this);
  if (released_ && !WaitsToClaim()) FinishSession();
}

void Session::GiveUp() {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  if (!released_) return;
  FollowPredecessor(Handing::kNow);
  if (!claimed_ && tickets_.sealed()) Claim();
  FinishSession();
}

}  // namespace h5mirror::vfd
