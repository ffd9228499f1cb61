// The program's side of a session.
#include "client_vfd/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace h5mirror::vfd {
namespace {

// With less than this in the open cut the sender is not woken: a system call per small write
// would be dearer than the write.
constexpr uint64_t kWakeBytes = 512 << 10;
// Longer than any file (H5FD_class_t's largest address).
constexpr uint64_t kWholeFile = uint64_t{1} << 63;
// For the end of a stream whose last barrier was answered.
constexpr absl::Duration kLeaseWait = absl::Milliseconds(250);

// Sessions that have lost one server ask its successors at different times.
absl::Duration JitterOf(const Bytes16& session_id) {
  return session_id[0] * OwnerSearch::kJitterMax / 255;
}

}  // namespace

Session::Session(SessionHost& host, SessionConfig config, std::unique_ptr<FileReader> file)
    : host_(host),
      config_(std::move(config)),
      file_(std::move(file)),
      session_id_(host_.RandomId()),
      join_secret_(config_.takes_parts ? host_.RandomId() : Bytes16{}),
      token_(config_.server.token),
      search_(JitterOf(session_id_)),
      rounds_(JitterOf(session_id_)),
      queue_(config_.remote ? CutQueue::kExact : Changes::kExtentsMax),
      record_(RecordPlace(config_.real_path, config_.record_tag)),
      succession_(config_.remote ? Succession::Awaits::kEnd : Succession::Awaits::kHandover),
      program_clock_({config_.timeout, config_.linger, config_.outage_wait}, host_.Now()),
      stream_clock_(config_.timeout, rpc::kMaxFrameBytes),
      watch_(session_id_),
      window_(host_.saved_bytes(config_.server.target)),
      pacing_(config_.bandwidth_bytes_per_second) {}

Session::~Session() {
  if (config_.release != nullptr) config_.release(config_.context);
}

std::shared_ptr<Session> Session::Start(SessionHost& host, SessionConfig config,
                                        std::unique_ptr<FileReader> file) {
  std::shared_ptr<Session> session(new Session(host, std::move(config), std::move(file)));
  std::shared_ptr<Session> predecessor = host.Predecessor(*session);
  if (predecessor && session->config_.adopts_outside_change) {
    predecessor->AwaitEnd(session->config_.facts);
  }
  bool takes_in = false;
  {
    absl::MutexLock lock(&session->mutex_);
    session->succession_.Begin(std::move(predecessor));
    session->FollowPredecessor();
    // Behind a session that has not ended, the record is not yet what it will be: claim later.
    if (session->succession_.may_claim()) session->Claim();
    session->succession_.OnStarted();
    session->Notify("attach", "", false);
    takes_in = session->outside_.phase() == OutsideCut::Phase::kFound;
  }
  if (takes_in) session->TakeOutsideIn();
  host.Add(session);
  host.Wake(session.get());
  if (takes_in) session->AwaitOutside();
  return session;
}

bool Session::SameFile(const Session& other) const {
  return config_.server.target == other.config_.server.target && config_.name == other.config_.name;
}

void Session::BeforeWrite(Extent extent) {
  absl::MutexLock lock(&mutex_);
  watch_.OnWrite();
  if (!collecting()) return;
  CopyOut(extent);
}

void Session::CopyOut(Extent extent) {
  const auto not_read = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !queue_.IsBeingRead(extent);
  };
  // Reading is local and short; it is never waited for long.
  while (!not_read()) host_.Await(mutex_, not_read, absl::InfiniteFuture());
  if (!queue_.has_closed()) return;
  // A program that chose to wait for the server waits while the server takes the data. Otherwise
  // one deadline holds for all of it.
  const absl::Time since = host_.Now();
  const absl::Time deadline = since + Patience();
  const bool waits_for_room = program_clock_.rides_out();
  while (true) {
    const std::vector<Extent> parts = queue_.AtRisk(extent);
    if (parts.empty()) return;
    uint64_t bytes = 0;
    for (const Extent& part : parts) bytes += part.length;
    const auto room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return window_.HasRoom(bytes, config_.window_bytes);
    };
    if (!room()) {
      const bool merged = MergeTick();
      window_.Hold(queue_.saved_bytes());
      if (merged) continue;
      const auto sent = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return room() || queue_.AtRisk(extent).empty() || link_.is_none();
      };
      BeginWait();
      const bool reached =
          waits_for_room ? Await(sent, since) == Waited::kReached : AwaitUntil(sent, deadline);
      if (!reached || link_.is_none()) {
        CutOff("the server takes the data too slowly");
        return;
      }
      continue;
    }
    for (const Extent& part : parts) {
      std::string copy(part.length, '\0');
      if (!file_->Read(part, copy.data()).ok()) {
        CutOffHere("the local file cannot be read back");
        return;
      }
      queue_.Save(part, std::move(copy));
    }
    window_.Hold(queue_.saved_bytes());
    return;
  }
}

void Session::DetachCuts() {
  absl::MutexLock lock(&mutex_);
  if (!collecting()) return;
  const auto fits = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t bytes = queue_.unread_bytes();
    return bytes == 0 || window_.HasRoom(bytes, config_.window_bytes);
  };
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool is_away = link_.is_none() && !standing_.is_connecting();
    return fits() || is_away || !may_be_answered();
  };
  if (!settled()) {
    BeginWait();
    if (Await(settled, host_.Now(), config_.linger) == Waited::kSilent) TimeOut();
  }
  // By others, from here on. Only they know when the file is at a cut again: a stream that is lost
  // here leaves no cut behind that would be read later.
  watch_.OnWrite();
  while (!fits()) {
    if (!MergeTick()) return CutOff("the server takes the data too slowly");
    window_.Hold(queue_.saved_bytes());
  }
  CopyOut({0, kWholeFile});
}

void Session::AfterWrite(Extent extent, H5mWriteClass write_class) {
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!collecting()) return;
    queue_.AddWrite(extent);
    if (write_class == H5M_WRITE_METADATA) metadata_.Add(extent);
    wake = idle_ && queue_.open_bytes() >= kWakeBytes && !link_.is_none();
    if (wake) idle_ = false;
  }
  if (wake) host_.Wake(this);
}

void Session::AfterTruncate(uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  if (collecting()) queue_.Truncate(size_bytes);
}

void Session::ChildWrote() { NoteChildWrite(session_id_); }

void Session::NoteChildren() {
  if (config_.remote || !watch_.TakeChildWrites()) return;
  // The child's bytes are in the file and in no dirty map, so the whole file is sent.
  for (const Extent& extent : file_->DataExtents()) queue_.AddWrite(extent);
}

void Session::SetGroup(std::optional<GroupCut> group) {
  absl::MutexLock lock(&mutex_);
  group_.Set(std::move(group));
}

uint64_t Session::CloseCut(CutKind kind, std::string comment) {
  NoteChildren();
  CutEnd end;
  end.time = host_.TimeOfDay();
  end.kind = kind;
  end.comment = outside_.CommentOf(kind, std::move(comment), tickets_);
  const absl::StatusOr<FileStat> stat = file_->Stat();
  if (stat.ok()) end.size_bytes = static_cast<uint64_t>(stat->size_bytes);
  if (stat.ok() && tickets_.sealed()) end.local = *stat;
  // The file is as at that cut: the program's calls set the group with their cuts, and others close
  // one only if nothing was written since.
  end.group = group_.now();
  if (end.group) end.time = end.group->time;
  end.ticket = tickets_.Next();
  if (tickets_.sealed()) closing_.SetStat(end.local);
  queue_.Close(std::move(end));
  watch_.OnCut();
  return tickets_.last();
}

absl::Status Session::Close() {
  const std::shared_ptr<Session> self = shared_from_this();
  absl::MutexLock lock(&mutex_);
  const bool sealed = tickets_.sealed();
  if (sealed) AwaitFinalCut();
  if (!sealed) AwaitLastCut();
  closing_.SetUnfinished(!sealed && link_.is_open());
  if (tickets_.IsFinalAcked(H5M_ACK_DURABLE)) {
    // The stream's end follows at once, and with it the lease is free for the next open.
    const auto ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return link_.is_none(); };
    AwaitUntil(ended, std::min(program_clock_.progress_time() + kLeaseWait,
                               program_clock_.CloseEnds(Patience())));
  }
  const absl::Status result = CloseResult();
  SettleClose(result.ok());
  life_.Release();
  Progress();
  host_.Wake(this);
  if (closing_.is_unfinished()) {
    // Where the program ends now, nobody would say it later.
    const auto told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !closing_.is_unfinished() || !life_.streaming();
    };
    AwaitUntil(told, host_.Now() + Patience());
  }
  return result;
}

// Notes the state of the close in the record, or ends the session.
void Session::SettleClose(bool is_acked) {
  if (config_.remote && !is_acked) {
    GiveUpRemote();
  } else if (WaitsToClaim()) {
    // The note depends on how the session before this one ends.
  } else if (!tickets_.sealed() || !collecting() || tickets_.IsFinalLost() ||
             tickets_.IsFinalAcked(H5M_ACK_DURABLE)) {
    // Durable; or abandoned, or without a server that has the last cut.
    FinishSession();
  } else if (!IsAnothersFile()) {
    // Until the sender hears that it is durable, for which this process may not live long enough.
    if (config_.ack_commit != H5M_ACK_NONE || !link_.is_open()) SaveDirtyMap();
    SaveRecord(RecordState::kBehind);
  }
}

absl::Status Session::CloseResult() const {
  if (tickets_.IsFinalAcked(config_.ack_commit)) return absl::OkStatus();
  if (!standing_.detail().empty()) return absl::UnavailableError(standing_.detail());
  return absl::UnavailableError(
      tickets_.sealed()
          ? absl::StrCat(config_.server.server, " has not confirmed the last close")
          : "it was closed after a call had failed, and data written after its last cut is lost");
}

void Session::GoBehind(const std::string& why, bool quiet) {
  if (config_.remote) {  // The program hears of it where a call fails.
    const std::string detail = absl::StrCat(config_.server.server, ": ", why);
    const Audience heard = standing_.GoBehind(detail, Audience::kProgram, host_.Now());
    if (heard == Audience::kNobody) return;
    return Notify("behind", absl::StrCat(config_.real_path, ": ", detail), false);
  }
  const std::string detail =
      absl::StrCat(config_.real_path, ": mirror ", config_.server.server, " is behind: ", why);
  const Audience most = quiet ? Audience::kProgram : Audience::kUser;
  const Audience heard = standing_.GoBehind(detail, most, host_.Now());
  if (heard == Audience::kNobody) return;
  // A new token is looked for.
  const bool stays = link_.is_refused() && !waits_for_token_;
  Notify("behind",
         absl::StrCat(detail, "; the program goes on locally. ",
                      stays ? "Once the cause is mended" : "Unless it catches up by itself",
                      ": h5mirror resync ", config_.real_path),
         heard == Audience::kUser);
}

void Session::CutOff(const std::string& why, Retry retry) {
  route_.OnLost(config_.server);  // It may have been given up meanwhile.
  CutOffHere(why, retry);
}

void Session::CutOffHere(const std::string& why, Retry retry) {
  link_.Cancel();
  LoseStream(why, retry);
  host_.Wake(this);
}

void Session::Notify(const char* event, const std::string& detail, bool to_user) {
  const H5mEvent told{event,           ToldState(),    base_.cut(),
                      base_.version(), detail.c_str(), to_user ? 1 : 0};
  if (config_.notify != nullptr) config_.notify(config_.context, &told);
}

// A resync of a close that the server never got tells it.
std::optional<RecordGroup> Session::GroupOfClose() const {
  const std::optional<GroupCut>& cut = group_.now();
  if (!cut || !tickets_.sealed()) return std::nullopt;
  return RecordGroup{cut->id, cut->number, cut->members};
}

bool Session::SaveRecord(RecordState state) {
  if (life_.superseded() || config_.remote) return true;  // It is the follower's; or there is none.
  // Behind the program's back a record is only brought up to date, never made: the user may be
  // deleting the file and its directory just now.
  const absl::StatusOr<bool> written = record_.Save(
      {state, standing_.detail(), closing_.stat(), session_id_, tickets_.FinalSeq(), base_.cut(),
       base_.version(), host_.TimeOfDay(), GroupOfClose()},
      closing_.is_unlocked() ? SessionRecord::Writing::kUpdate : SessionRecord::Writing::kMake);
  if (!written.ok()) {
    Notify("record",
           absl::StrCat(config_.real_path,
                        ": the mirror's record cannot be written: ", written.status().message()),
           true);
  }
  return written.value_or(false);
}

bool Session::SaveProgress() {
  if (!closing_.is_unlocked()) return SaveRecord(RecordState::kOpen);
  if (IsAnothersFile()) return false;
  // The barrier that the record names as sent may be lost with its stream, so the map is written
  // again.
  SaveDirtyMap();
  return SaveRecord(RecordState::kBehind);
}

// True: another program has opened the file since it was closed here. Then the record and the dirty
// map belong to that program.
bool Session::IsAnothersFile() const {
  if (!closing_.is_unlocked() || config_.remote) return false;
  if (closing_.is_anothers()) return true;
  if (life_.has_follower()) return false;
  if (!FileIsAsClosed()) return true;
  // The file looks unchanged, but the other program may not have written yet.
  return record_.IsAnothers();
}

void Session::FinishSession() {
  if (life_.done()) return;
  const bool durable = tickets_.IsFinalAcked(H5M_ACK_DURABLE);
  SendAgain();
  if (life_.superseded() && !durable) {
    // Its follower sees it through, and reports.
  } else if (durable) {
    standing_.EndClean();
    if (!IsAnothersFile()) SaveRecord(RecordState::kClean);
    Notify("close", "", false);
  } else if (standing_.is_diverged()) {
    if (!IsAnothersFile()) SaveRecord(RecordState::kDiverged);
    Notify("close", "", false);
  } else if (IsAnothersFile()) {
    standing_.EndBehind();  // Whatever it was told last: the mirror lacks what it closed.
    Notify("close", standing_.detail(), false);
  } else if (config_.remote) {
    standing_.EndBehind();
    Notify("close", standing_.detail(), false);
  } else if (succession_.is_claimed()) {
    EndBehind();
  }
  life_.Finish();
  if (gone()) host_.WakeSuccessors(*this);
}

// Notes beside the file which bytes the mirror lacks, and tells the user how they will be sent.
void Session::EndBehind() {
  if (!standing_.is_behind()) {
    standing_.EndBehind(absl::StrCat(
        config_.real_path,
        tickets_.sealed() ? ": the mirror has not confirmed the last close"
                          : ": closed without a consistent end; the mirror holds the last cut",
        config_.record_tag.empty() ? "" : absl::StrCat(" (", config_.server.server, ")")));
  }
  SaveDirtyMap();
  SaveRecord(RecordState::kBehind);
  Notify("close",
         absl::StrCat(standing_.detail(),
                      record_.names_map()
                          ? ". The next open that writes to it brings the rest, or: h5mirror "
                            "resync "
                          : ". To bring the mirror level: h5mirror resync ",
                      config_.real_path),
         !standing_.user_knows());
}

}  // namespace h5mirror::vfd
