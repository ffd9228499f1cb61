#include "sync/resync.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/cut_text.h"
#include "base/dirty_map.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/random.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/output/progress.h"
#include "sync/bring_level.h"
#include "sync/closed_record.h"
#include "sync/compare.h"
#include "sync/local_file.h"
#include "sync/push_session.h"
#include "sync/upload.h"

namespace h5mirror::tools {
namespace {

// No writer holds the lease: what a version waits for is a sync.
constexpr absl::Duration kCommitTime = absl::Minutes(6);

// The server's newest cut, and a version with its content.
struct Base {
  int64_t cut = 0;
  v1::Version version;
};

class Resyncer {
 public:
  Resyncer(Context& context, const ResyncRequest& request, const LocalFile& file,
           rpc::Client& client, std::string name)
      : request_(request),
        file_(file),
        record_(request.mirror.record),
        client_(client),
        blocks_(file.fd(), file.size_bytes(), file.path().string()),
        progress_(context.streams(), request.local, file.size_bytes()) {
    outcome_.name = std::move(name);
    outcome_.server = client.options().server;
  }

  absl::StatusOr<ResyncOutcome> Run() {
    H5M_ASSIGN_OR_RETURN(here_, LocalOrigin(file_.path()));
    H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> server,
                         FindServerFile(client_, outcome_.name));
    if (server) {
      server_ = *server;
      H5M_RETURN_IF_ERROR(CheckNoLease(request_.local, server_));
      H5M_RETURN_IF_ERROR(CheckRight());
      H5M_RETURN_IF_ERROR(FindPatch());
      if (IsLevelNow() && !patch_) return outcome_;
    }
    if (request_.name.empty()) {
      H5M_RETURN_IF_ERROR(CheckNotRenamed(client_, outcome_.name, file_, record_, server));
    }
    if (!server) return UploadAll();
    H5M_RETURN_IF_ERROR(FindBase());
    Comparison comparison(client_, outcome_.name, base_.version.version(), blocks_, progress_);
    H5M_RETURN_IF_ERROR(comparison.Coarse());
    outcome_.version = base_.version.version();
    outcome_.cut = base_.cut;
    absl::Status status = Decide(comparison);
    outcome_.digest_bytes += comparison.digest_bytes();
    H5M_RETURN_IF_ERROR(status);
    return outcome_;
  }

 private:
  RecordPlace place() const { return {file_.path(), request_.mirror.tag}; }

  bool IsLevelNow() {
    // The cut in a record of another address means nothing on this server.
    if (!IsLevel(outcome_.name, file_, record_, server_) ||
        !IsSameServer(record_->server, outcome_.server) ||
        RightVersionOf(server_.newest_version()) != 0) {
      return false;
    }
    outcome_.version = record_->version;
    outcome_.cut = record_->cut;
    return true;
  }

  // Finds the patch of the local file's superblock, for the case that the file equals the server's.
  absl::Status FindPatch() {
    if (request_.from != Side::kRemote) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(
        patch_, FindSuperblockPatchOf(file_.fd(), file_.size_bytes(), file_.path().string()));
    return absl::OkStatus();
  }

  absl::Status Decide(Comparison& comparison) {
    if (comparison.equal() && RightVersionOf(base_.version) == 0) return Mend();
    if (request_.from == Side::kRemote) return TakeRemote(comparison);
    if (request_.from == Side::kUndecided && !LocalIsNewest()) return Refuse(comparison);
    H5M_RETURN_IF_ERROR(CheckContent(file_, record_, request_.content));
    outcome_.action = ResyncAction::kSent;
    outcome_.kept_version = request_.from == Side::kLocal ? base_.version.version() : 0;
    PushRequest push = MakePush();
    push.comment = Comment("resync");
    H5M_RETURN_IF_ERROR(SendDifferences(comparison, push));
    if (!request_.dry_run) NoteFoundEqual(client_, server_, outcome_.version);
    return absl::OkStatus();
  }

  absl::StatusOr<ResyncOutcome> UploadAll() {
    if (request_.from == Side::kRemote) {
      return absl::NotFoundError(StrCat(request_.local, ": the server has no file ", outcome_.name,
                                        "; --from local uploads it"));
    }
    H5M_RETURN_IF_ERROR(CheckContent(file_, record_, request_.content));
    outcome_.action = ResyncAction::kUpload;
    outcome_.differing_bytes = file_.size_bytes();
    if (request_.dry_run) return outcome_;
    PushRequest push;
    push.verb = "resync";
    push.name = outcome_.name;
    push.server = client_.options().server;
    push.tag = request_.mirror.tag;
    push.comment = request_.comment;
    H5M_ASSIGN_OR_RETURN(const PushResult pushed, Upload(client_, file_, push, progress_));
    Take(pushed);
    return outcome_;
  }

  // Before the local bytes are the server's newest version: the way back needs it.
  absl::Status CheckRight() {
    if (request_.from != Side::kRemote) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const bool may_restore, MayRestore(client_, outcome_.name));
    if (may_restore) return absl::OkStatus();
    return absl::PermissionDeniedError(
        "resync --from remote rolls the server's file back to what it was before the local bytes "
        "were kept as a version, which needs the right \"restore\"; h5mirror recover does not");
  }

  absl::Status FindBase() {
    base_ = {server_.last_cut(), server_.newest_version()};
    if (base_.version.version() != 0 && base_.version.cut() == base_.cut) return absl::OkStatus();
    if (request_.dry_run) {
      if (base_.version.version() != 0) return absl::OkStatus();
      return absl::FailedPreconditionError(
          StrCat(outcome_.name, " has no version yet to compare with; leave out --dry-run"));
    }
    const v1::CommitVersionRequest commit = NewCommit(
        outcome_.name, StrCat("before a ", request_.verb, " of ", here_.host(), ":", here_.path()));
    H5M_ASSIGN_OR_RETURN(const v1::CommitVersionResponse kept,
                         client_.CommitVersion(commit, kCommitTime));
    base_.version = kept.version();
    // The version may be older than the newest cut where that one changed nothing. It has its bytes
    // if no cut was made meanwhile.
    H5M_ASSIGN_OR_RETURN(const std::optional<v1::FileStatus> now,
                         FindServerFile(client_, outcome_.name));
    if (now && now->last_cut() == base_.cut && now->file_id() == server_.file_id()) {
      return absl::OkStatus();
    }
    return absl::AbortedError(
        StrCat(outcome_.name, " was written on the server meanwhile; try again"));
  }

  // True: by the record only this file's writers wrote, and the local file has the bytes that the
  // server lacks.
  bool LocalIsNewest() const {
    if (!record_ || record_->name != outcome_.name || record_->state != RecordState::kBehind ||
        !IsSameServer(record_->server, outcome_.server) || record_->stat != file_.stat() ||
        ToByteString(record_->file_id) != server_.file_id() ||
        here_.machine_id() != server_.origin().machine_id()) {  // A file may be renamed.
      return false;
    }
    if (base_.cut == record_->cut) return true;
    const std::optional<DirtyMap> map = FindDirtyMap(place(), *record_, file_.stat());
    return map && map->base_cut > 0 && base_.cut >= map->base_cut &&
           base_.cut <= std::max(map->base_cut, map->cut_newest);
  }

  absl::Status Refuse(Comparison& comparison) {
    H5M_RETURN_IF_ERROR(comparison.Fine([](absl::Span<const Extent>) { return absl::OkStatus(); }));
    const std::string local = request_.local;
    return absl::FailedPreconditionError(
        StrCat(local, " (", HumanBytes(file_.size_bytes()), ", ", LocalState(), ") and ",
               outcome_.name, " on the server (", HumanBytes(comparison.remote_size_bytes()),
               ", version ", base_.version.version(), ", cut ", CutText(base_.cut),
               ", written from ", server_.origin().host(), ":", server_.origin().path(),
               ") differ in ", HumanBytes(comparison.differing_bytes()),
               ", and it is not certain which is right: h5mirror ", ServerFlag(),
               "resync --from local ", local, " makes the server's like the local one, h5mirror ",
               ServerFlag(), "resync --from remote ", local,
               " the local one like the server's; the losing side stays a version"));
  }

  // The flag that names the mirror in a command, if there are several.
  std::string ServerFlag() const {
    return request_.mirror.tag.empty() ? "" : StrCat("--server ", outcome_.server, " ");
  }

  std::string LocalState() const {
    if (!record_) return "with no record of a mirror";
    if (record_->stat != file_.stat() || record_->state == RecordState::kOpen) {
      return StrCat("changed since it was last equal, at cut ", CutText(record_->cut));
    }
    return record_->state == RecordState::kBehind
               ? StrCat("ahead of cut ", CutText(record_->cut))
               : StrCat("closed as cut ", CutText(record_->cut), ", version ", record_->version);
  }

  // The two sides are equal: only the record and the file's origin change.
  absl::Status Mend() {
    outcome_.action = ResyncAction::kEqual;
    if (request_.from == Side::kUndecided && !IsSameOrigin(here_, server_.origin())) {
      return absl::FailedPreconditionError(
          StrCat(request_.local, " is the same as ", outcome_.name, "@", outcome_.version,
                 ", which is written from ", server_.origin().host(), ":", server_.origin().path(),
                 "; h5mirror adopt ", request_.local, " has it written from here from now on"));
    }
    if (request_.dry_run) return absl::OkStatus();
    if (patch_) {
      H5M_ASSIGN_OR_RETURN(const FileStat stat, CloseInPlace(file_, *patch_));
      v1::Version newest = base_.version;
      newest.set_cut(base_.cut);  // Those after it changed nothing.
      return Adopt(newest, stat, patch_);
    }
    // A commit that changes nothing makes no version, and tells the server of the local file.
    PushRequest push = MakePush();
    PushSession session(client_, file_, push);
    H5M_RETURN_IF_ERROR(session.Open());
    H5M_ASSIGN_OR_RETURN(const PushResult pushed, session.Commit());
    Take(pushed);
    NoteFoundEqual(client_, server_, outcome_.version);
    return absl::OkStatus();
  }

  // The comment of the version that a resync makes: the user's, else `otherwise`. A push only takes
  // the user's.
  std::string Comment(std::string_view otherwise) const {
    if (request_.verb != "resync") return request_.comment;
    return request_.comment.empty() ? std::string(otherwise) : StrCat("resync: ", request_.comment);
  }

  PushRequest MakePush() const {
    PushRequest push;
    push.verb = request_.verb;
    push.name = outcome_.name;
    push.server = client_.options().server;
    push.tag = request_.mirror.tag;
    push.file_id = FromByteString(server_.file_id()).value_or(Bytes16{});
    push.intent = v1::INTENT_RESYNC;
    push.base_cut = base_.cut;
    return push;
  }

  absl::Status SendDifferences(Comparison& comparison, const PushRequest& push) {
    if (request_.dry_run) {
      H5M_RETURN_IF_ERROR(comparison.Fine([this](absl::Span<const Extent> differing) {
        for (const Extent extent : differing) {
          const uint64_t end = std::min(extent.end(), file_.size_bytes());
          if (end > extent.offset) outcome_.sent_bytes += end - extent.offset;
        }
        return absl::OkStatus();
      }));
      outcome_.differing_bytes = comparison.differing_bytes();
      return absl::OkStatus();
    }
    PushSession session(client_, file_, push);
    H5M_RETURN_IF_ERROR(session.Open());
    if (file_.size_bytes() < comparison.remote_size_bytes()) {
      H5M_RETURN_IF_ERROR(session.Truncate(file_.size_bytes()));
    }
    H5M_RETURN_IF_ERROR(comparison.Fine([&](absl::Span<const Extent> differing) -> absl::Status {
      for (const Extent extent : differing) H5M_RETURN_IF_ERROR(session.Send(extent));
      return session.KeepAlive();
    }));
    outcome_.differing_bytes = comparison.differing_bytes();
    H5M_ASSIGN_OR_RETURN(const PushResult pushed, session.Commit());
    Take(pushed);
    return absl::OkStatus();
  }

  void Take(const PushResult& pushed) {
    outcome_.version = pushed.version;
    outcome_.cut = pushed.cut;
    outcome_.sent_bytes += pushed.sent_bytes;
  }

  // ---- --from remote ----

  // Names the file and the version to go back to. A later run recognizes by it that an earlier one
  // was interrupted.
  std::string LocalSideComment(int64_t right) const {
    return StrCat("local side of ", here_.host(), ":", here_.path(), ", not kept: version ", right,
                  " comes back");
  }

  // The version to go back to, if `newest` is the saved local side of this file and the way back
  // was not finished. Else 0.
  int64_t RightVersionOf(const v1::Version& newest) const {
    if (request_.from != Side::kRemote) return 0;
    const std::string mark = ", not kept: version ";
    const size_t at = newest.comment().rfind(mark);
    int64_t right = 0;
    if (at == std::string::npos) return 0;
    std::string_view number = std::string_view(newest.comment()).substr(at + mark.size());
    number = number.substr(0, number.find(' '));
    const bool known = absl::SimpleAtoi(ToAbsl(number), &right) && right > 0 &&
                       right < newest.version() &&
                       absl::StartsWith(newest.comment(), LocalSideComment(right));
    return known ? right : 0;
  }

  // Finds the version that the server's file must become.
  absl::StatusOr<v1::Version> FindRight() {
    const int64_t number = RightVersionOf(base_.version);
    if (number == 0) return base_.version;
    v1::GetVersionRequest request;
    request.set_name(outcome_.name);
    request.set_version(number);
    absl::StatusOr<v1::Version> right = client_.GetVersion(request);
    if (!absl::IsNotFound(right.status())) return right;
    return absl::FailedPreconditionError(StrCat(
        outcome_.name, ": version ", number,
        ", which a run that was cut short was to bring back, has been dropped; the newest, ",
        base_.version.version(), ", is this file's own former state. h5mirror log ", outcome_.name,
        " shows the others: h5mirror rollback ", outcome_.name, "@VERSION && h5mirror recover ",
        request_.local, " takes one of them, h5mirror resync --from local ", request_.local,
        " the local bytes"));
  }

  absl::Status TakeRemote(Comparison& comparison) {
    outcome_.action = ResyncAction::kFetch;
    H5M_ASSIGN_OR_RETURN(const v1::Version right, FindRight());
    if (comparison.equal()) {
      outcome_.kept_version = base_.version.version();
    } else {
      H5M_RETURN_IF_ERROR(KeepLocalSide(comparison, right));
    }
    if (request_.dry_run) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const v1::Version newest, RollBack(right));
    H5M_ASSIGN_OR_RETURN(const LevelResult level,
                         BringLevel(client_, outcome_.name, newest, file_, progress_));
    outcome_.received_bytes = level.received_bytes;
    outcome_.differing_bytes = level.differing_bytes;
    outcome_.digest_bytes += level.digest_bytes;
    return Adopt(newest, level.stat, level.patch);
  }

  absl::Status KeepLocalSide(Comparison& comparison, const v1::Version& right) {
    PushRequest push = MakePush();
    push.comment = LocalSideComment(right.version());
    push.diverged_detail =
        StrCat("h5mirror resync --from remote was cut short; run it again to get version ",
               right.version());
    H5M_RETURN_IF_ERROR(SendDifferences(comparison, push));
    if (request_.dry_run) return absl::OkStatus();
    // Where the history is stopped a commit makes none, and the local bytes would be lost.
    if (outcome_.version <= base_.version.version()) {
      return absl::ResourceExhaustedError(StrCat(
          outcome_.name, ": the local bytes are on the server, but no version was made of them (",
          server_.history_notice(),
          "); the local file was left as it is. Make room there, then run "
          "this again"));
    }
    outcome_.kept_version = outcome_.version;
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Version> RollBack(const v1::Version& to) {
    v1::RollbackVersionRequest request;
    request.set_name(outcome_.name);
    request.set_version(to.version());
    request.set_comment(Comment("resync --from remote"));
    *request.mutable_writer() = LocalWriter();
    request.set_request_id(ToByteString(RandomBytes16()));
    const absl::StatusOr<v1::Version> done = client_.RollbackVersion(request);
    if (done.ok()) return done;
    return absl::Status(
        done.status().code(),
        ToAbsl(StrCat(ToStd(done.status().message()), "; the local bytes are version ",
                      outcome_.kept_version, ", version ", to.version(),
                      " is not the newest again yet: run h5mirror resync --from remote ",
                      request_.local, " once more")));
  }

  // Both sides are `newest` now, but for `patch` of the local one, which `stat` is of.
  absl::Status Adopt(const v1::Version& newest, const FileStat& stat,
                     const std::optional<SuperblockPatch>& patch) {
    outcome_.version = newest.version();
    outcome_.cut = newest.cut();
    v1::AdoptFileRequest request;
    request.set_name(outcome_.name);
    request.set_version(newest.version());
    *request.mutable_origin() = here_;
    *request.mutable_local() = ToProto(stat);
    H5M_RETURN_IF_ERROR(client_.AdoptFile(request).status());
    LocalRecord record;
    record.state = RecordState::kClean;
    H5M_ASSIGN_OR_RETURN(record.file_id, FromByteString(server_.file_id()));
    record.server = client_.options().server;
    record.name = outcome_.name;
    record.cut = newest.cut();
    record.version = newest.version();
    record.stat = stat;
    record.since = absl::Now();
    outcome_.superblock_closed = patch.has_value();
    if (patch) return WriteClosedRecord(place(), std::move(record), *patch);
    H5M_RETURN_IF_ERROR(WriteLocalRecord(place(), record));
    RemoveDirtyMap(place());
    NoteFoundEqual(client_, server_, newest.version());
    return absl::OkStatus();
  }

  const ResyncRequest& request_;
  const LocalFile& file_;
  const std::optional<LocalRecord>& record_;
  rpc::Client& client_;
  LocalBlocks blocks_;
  Progress progress_;
  v1::Origin here_;
  v1::FileStatus server_;
  Base base_;
  std::optional<SuperblockPatch> patch_;  // kRemote: that makes the local file a closed one
  ResyncOutcome outcome_;
};

// Until it returns the file is locked.
absl::StatusOr<ResyncOutcome> ResyncLocked(Context& context, const ResyncRequest& request) {
  const FileArg& arg = request.mirror;
  H5M_ASSIGN_OR_RETURN(std::string name, MirrorName(context, request.name, "", arg));
  // Changing it wants nobody to have it open.
  const FileLock lock = request.from == Side::kRemote ? FileLock::kExclusive : FileLock::kShared;
  H5M_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(arg.local, lock));
  H5M_RETURN_IF_ERROR(CheckNoEdit(file));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(arg));
  return Resyncer(context, request, file, *client, std::move(name)).Run();
}

}  // namespace

absl::StatusOr<ResyncOutcome> Resync(Context& context, const ResyncRequest& request) {
  H5M_ASSIGN_OR_RETURN(ResyncOutcome outcome, ResyncLocked(context, request));
  if (!outcome.superblock_closed) return outcome;
  ResyncRequest closing = request;
  closing.comment = StrCat("version ", outcome.version, " with a closed superblock");
  if (const auto closed = SendClosedSuperblock(context, std::move(closing))) {
    outcome.version = closed->version;
    outcome.cut = closed->cut;
    outcome.sent_bytes += closed->sent_bytes;
    outcome.digest_bytes += closed->digest_bytes;
  }
  return outcome;
}

std::optional<ResyncOutcome> SendClosedSuperblock(Context& context, ResyncRequest request) {
  request.from = Side::kUndecided;
  absl::StatusOr<LocalRecord> record = ReadLocalRecord(request.mirror.place());
  absl::Status status = record.status();
  if (record.ok()) {
    request.mirror.record = *std::move(record);
    absl::StatusOr<ResyncOutcome> done = Resync(context, request);
    if (done.ok()) return *std::move(done);
    status = done.status();
  }
  context.Note(StrCat("the server's file lacks the closed superblock (", status.message(),
                      "); the next program that changes the file sends it, or h5mirror resync ",
                      request.local));
  return std::nullopt;
}

}  // namespace h5mirror::tools
