// A closed file that a program without the driver has changed since its last mirrored close, where
// the server has not moved: it is taken in, as a version of its own ("outside change"), before the
// program's first byte changes the file. docs/design/020-which-side-is-right.md, "An outside
// change".
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/dirty_map.h"
#include "base/human.h"
#include "base/superblock.h"
#include "client_vfd/session/outside_change.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {
namespace {

// How long the program waits for the comparison, and then for the version. After that the work goes
// on in the background.
constexpr absl::Duration kCompareTime = absl::Seconds(5);
constexpr absl::Duration kDurableTime = absl::Seconds(5);

}  // namespace

// HDF5 has opened it and holds its lock; here its superblock says that its last writer closed it.
// Where the program has written before (is_written), the outside change comes with its first cut.
bool Session::IsWhole() const {
  const absl::StatusOr<FileStat> stat = file_->Stat();
  if (!stat.ok()) return false;
  if (!config_.is_written && *stat != config_.facts.stat_at_open) return false;
  const auto read = [&](Extent extent) -> absl::StatusOr<std::string> {
    std::string bytes(extent.length, '\0');
    const absl::Status status = file_->Read(extent, bytes.data());
    if (!status.ok()) return status;
    return bytes;
  };
  return LookAtHdf5(static_cast<uint64_t>(stat->size_bytes), read) == Hdf5State::kClosed;
}

bool Session::ClaimOutside(const std::optional<FoundRecord>& found) {
  if (!config_.adopts_outside_change || !found) return false;
  const std::optional<Relation> relation = RelationOfOutsideChange(config_.facts, found->record);
  if (!relation || !IsWhole()) return false;
  // Another file in its place, with a mirror and a history of its own, is no change of this one.
  const bool is_other = found->record.stat.inode != config_.facts.stat_at_open.inode;
  if (is_other &&
      FindFormerRecord(record_.place(), config_.facts.server, config_.facts.stat_at_open).ok()) {
    return false;
  }
  const std::optional<DirtyMap> map = FindAnyDirtyMap(found->place, record_.value());
  if (!map && relation->base_cut < 0) return false;  // Nobody knows what the server has.
  base_.Claim(*relation);
  if (map) TakeUp(*map);
  outside_.Find();
  return true;
}

// The next session of the program, on its thread. A file that was changed outside between two opens
// is compared with the server's file, so the newest cut there must be known.
void Session::AwaitEnd(const LocalFacts& facts) {
  if (config_.remote || facts.created) return;
  absl::MutexLock lock(&mutex_);
  const bool is_changed =
      life_.released() && closing_.stat() && *closing_.stat() != facts.stat_at_open;
  if (!is_changed || record_.IsAnothers()) return;
  // Waits for the answer if the whole cut is in flight; gives up any other cut.
  if (queue_.drained() && tickets_.IsFinalTaken() && link_.is_open()) {
    life_.OnReopened();
  } else {
    NoteFollower(false);
  }
  host_.Wake(this);
  const auto ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return life_.gone(); };
  AwaitUntil(ended, host_.Now() + Patience());
}

// The program's thread; nobody else knows the session yet.
void Session::TakeOutsideIn() {
  OutsideChange change = WholeFile(*file_);
  int64_t compare_with = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (base_.IsExact()) compare_with = base_.base_cut();
  }
  if (compare_with > 0) {
    absl::StatusOr<OutsideChange> found = host_.FindOutsideChange(
        config_.server, config_.name, compare_with, *file_, config_.timeout, kCompareTime);
    if (found.ok()) change = *std::move(found);
    const bool away =
        absl::IsUnavailable(found.status()) || absl::IsDeadlineExceeded(found.status());
    if (away) host_.SetSuspect(config_.server.target, true);
  }
  absl::MutexLock lock(&mutex_);
  // A user block is written behind HDF5's back by the program itself, and is no version.
  if (change.is_user_block) queue_.AddChanges(change.changes);
  if (change.is_none || change.is_user_block) {
    outside_.FindNothing();
    SaveProgress();
    return record_.ForgetElsewhere();
  }
  queue_.AddChanges(change.changes);
  if (compare_with > 0) NoteOutside();
  AskCut(CutKind::kCommit, H5M_ACK_DURABLE, OutsideCut::kComment);
  outside_.Send(asked_.ticket, change.changes.extents.byte_count());
}

// If the program is killed from here on, a dirty map names the bytes that the server lacks, as
// after a close that was not answered. The next open finds out whether the version was made.
void Session::NoteOutside() {
  const Changes changes = queue_.open_changes();
  DirtyMap map;
  map.id = host_.RandomId();
  map.file_id = record_.value().file_id;
  map.claim = DirtyMap::Claim::kResume;
  map.session_id = session_id_;
  map.base_cut = map.cut_newest = base_.base_cut();
  map.stat = config_.facts.stat_at_open;
  if (config_.is_written) map.stat = file_->Stat().value_or(map.stat);
  map.truncate = changes.truncate;
  map.extents.AddAll(changes.extents);
  if (record_.NoteOutside(map, host_.TimeOfDay())) record_.ForgetElsewhere();
}

// The program may change the file afterwards.
void Session::AwaitOutside() {
  absl::MutexLock lock(&mutex_);
  // Otherwise only the file's times had changed.
  if (outside_.phase() != OutsideCut::Phase::kOnItsWay) return;
  const AskedCut asked = std::exchange(asked_, AskedCut{});
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tickets_.Acked(asked.ticket, asked.ack) || tickets_.IsLost(asked.ticket) ||
           !may_be_answered();
  };
  if (asked.is_awaited && Await(settled, asked.since, kDurableTime) == Waited::kSilent) TimeOut();
  outside_.Settle();
  if (!collecting()) return;  // The two sides have diverged; the user was told, and the record is.
  const bool is_there = tickets_.Acked(asked.ticket, asked.ack);
  if (is_there) {
    record_.SetLevel(base_.cut(), base_.version());
    outside_.Forget();
  }
  SaveProgress();
  record_.ForgetElsewhere();
  const std::string what =
      absl::StrCat(config_.real_path,
                   " was changed by a program without the driver since it was last mirrored (",
                   HumanBytes(outside_.bytes()), " sent). ");
  Notify("outside_change",
         is_there ? absl::StrCat(what, "That is version ", base_.version(), " on ",
                                 config_.server.server, ", \"", OutsideCut::kComment, "\"")
                  : absl::StrCat(what, "It goes to ", config_.server.server,
                                 " with the program's own changes as soon as that takes it"),
         true);
}

}  // namespace h5mirror::vfd
