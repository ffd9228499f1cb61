#include "onion_store/jobs/archive_check.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/shared/object_cache.h"

namespace h5mirror::store {
namespace {

constexpr size_t kScanRows = 4096;

// The versions of both together.
Readers Joined(const Readers& a, const Readers& b) {
  if (a.second == 0) return b;
  if (b.second == 0) return a;
  return {std::min(a.first, b.first), std::max(a.second, b.second)};
}

// Whether the archive is at fault, and not an object.
bool IsAbsence(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status ArchiveCheck::Start() {
  H5M_ASSIGN_OR_RETURN(const std::vector<ArchivedSegment> rows, index_.ListArchived());
  for (const ArchivedSegment& row : rows) {
    if (row.state != ArchiveState::kArchived) continue;
    H5M_ASSIGN_OR_RETURN(const bool on_disk, pages_.IsOnDisk(row.segment));
    if (on_disk) continue;
    away_[row.segment] = row;
    // Elsewhere a part of a verification has pages; here it has segments.
    if (!findings_.IsWanted(row.segment * kBlockPages)) continue;
    todo_.push_back(row.segment);
    bytes_ += row.length;
  }
  H5M_ASSIGN_OR_RETURN(const auto copy, index_.FindCopy());
  if (copy && findings_.IsWanted(0)) copy_prefix_ = copy->prefix;
  return absl::OkStatus();
}

absl::StatusOr<bool> ArchiveCheck::Step() {
  if (found_) {
    H5M_RETURN_IF_ERROR(FindReaders());
  } else if (!todo_.empty()) {
    H5M_RETURN_IF_ERROR(ScanSome(away_.at(todo_.front())));
  } else if (!copy_prefix_.empty()) {
    H5M_RETURN_IF_ERROR(CheckCopy());
  }
  return found_.has_value() || !todo_.empty() || !copy_prefix_.empty();
}

absl::Status ArchiveCheck::CheckCopy() {
  ObjectStore* const store = file_.files().objects().store();
  if (store == nullptr) {
    copy_prefix_.clear();
    return absl::OkStatus();
  }
  const auto lost = LookForCopy(*store);
  if (IsAbsence(lost.status())) {
    // That says nothing about the file: all of its history may be on the disk.
    copy_prefix_.clear();
    findings_.progress.left =
        StrCat("its copy in the archive was not looked at: ", ToStd(lost.status().message()));
    return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(lost.status());
  return lost->has_value() ? EndCopy(**lost) : absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> ArchiveCheck::LookForCopy(ObjectStore& store) {
  const FileId& file_id = file_.files().file_id();
  H5M_ASSIGN_OR_RETURN(const ObjectPage page, store.List(CopyPrefix(file_id), list_next_,
                                                         kObjectListMax, ObjectCache::kGetTimeout));
  for (const ObjectInfo& object : page.objects) listed_.Note(file_id, object);
  list_next_ = page.next;
  if (!list_next_.empty()) return std::nullopt;
  const auto copy = GetCopyList(store, copy_prefix_);
  const bool is_lost = absl::IsNotFound(copy.status()) || absl::IsDataLoss(copy.status());
  if (!copy.ok() && !is_lost) return copy.status();
  return copy.ok() ? listed_.LostPart(*copy) : CopyListName(copy_prefix_);
}

absl::Status ArchiveCheck::EndCopy(const std::string& lost) {
  const std::string prefix = std::exchange(copy_prefix_, "");
  if (lost.empty()) return absl::OkStatus();
  WorkTurn turn(&file_.work_lock());
  H5M_RETURN_IF_ERROR(file_.dead());
  H5M_ASSIGN_OR_RETURN(const auto row, index_.FindCopy());
  // There is a newer copy, and its job has deleted the objects that it does not need.
  if (!row || row->prefix != prefix) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(index_.PutCopy({}));
  findings_.Report(
      DamagePlace::kPages, file_.files().name(), 0, {0, 0},
      StrCat("its copy in the archive lacks ", lost,
             ", so the file cannot be restored from there; the next copy begins anew"));
  return absl::OkStatus();
}

absl::Status ArchiveCheck::ScanSome(const ArchivedSegment& segment) {
  if (!scan_) scan_.emplace(file_.files(), segment);
  const uint64_t before = scan_->done_bytes();
  const absl::StatusOr<bool> more = scan_->Step();
  findings_.progress.checked_bytes += scan_->done_bytes() - before;
  if (more.value_or(false)) return absl::OkStatus();
  // A store without an archive lacks the pages. A store with the wrong archive, or one that is not
  // mounted, does not know.
  const bool has_archive = file_.files().objects().store() != nullptr;
  const bool is_damage = absl::IsDataLoss(more.status()) ||
                         (!has_archive && absl::IsFailedPrecondition(more.status()));
  if (!more.ok() && !is_damage) return more.status();
  if (!more.ok()) found_ = Found{segment, std::string(more.status().message())};
  scan_.reset();
  todo_.pop_front();
  return absl::OkStatus();
}

absl::Status ArchiveCheck::FindReaders() {
  std::vector<RunOfGeneration> rows;
  H5M_ASSIGN_OR_RETURN(const bool more, index_.ScanPages(kScanRows, &found_->cursor, &rows));
  for (const RunOfGeneration& row : rows) {
    if (row.run.segment != found_->segment.segment) continue;
    found_->has_rows = true;
    H5M_ASSIGN_OR_RETURN(const Readers readers,
                         index_.ReadersOf(row.generation, row.run.page, row.run.version, 0));
    found_->readers = Joined(found_->readers, readers);
  }
  if (more) return absl::OkStatus();
  const Found found = *std::exchange(found_, std::nullopt);
  if (!found.has_rows) return absl::OkStatus();
  findings_.Report(DamagePlace::kPages, pages_.SegmentName(found.segment.segment), 0, found.readers,
                   found.message);
  return absl::OkStatus();
}

}  // namespace h5mirror::store
