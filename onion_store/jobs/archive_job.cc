#include "onion_store/jobs/archive_job.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/history_names.h"
#include "onion_store/jobs/segment_seal.h"
#include "onion_store/pages/archived_segments.h"
#include "onion_store/pages/segment_object.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kSumBytes = 16 << 20;  // summed by one step
constexpr uint64_t kPieceBytes = 1 << 20;

// Enough for two tries over a network of 1 MiB/s.
absl::Duration PutTimeout(uint64_t bytes) {
  return absl::Minutes(2) + 2 * absl::Seconds(bytes >> 20);
}

}  // namespace

ArchiveJobImpl::ArchiveJobImpl(std::shared_ptr<ArchiveSource> file,
                               std::shared_ptr<VersionIndex> index,
                               std::shared_ptr<PageSegments> pages, const ArchiveRequest& request)
    : file_(std::move(file)),
      files_(file_->files()),
      work_lock_(file_->work_lock()),
      index_(std::move(index)),
      pages_(std::move(pages)),
      store_(*files_.objects().store()),
      request_(request),
      dead_(files_, *index_),
      charge_(files_.budget(), ObjectScan::kStepBytes) {}

ArchiveJobImpl::~ArchiveJobImpl() { file_->ArchiveEnded(); }

absl::StatusOr<ArchiveProgress> ArchiveJobImpl::Step() {
  H5M_RETURN_IF_ERROR(file_->dead());
  H5M_RETURN_IF_ERROR(Run());
  progress_.objects_deleted = dead_.deleted_count();
  if (!dead_.left().empty()) progress_.left = dead_.left();
  progress_.done = phase_ == Phase::kDone;
  return progress_;
}

absl::Status ArchiveJobImpl::OfDisk(absl::Status status) {
  if (!status.ok() && !absl::IsResourceExhausted(status)) file_->Die(status);
  return status;
}

absl::Status ArchiveJobImpl::Run() {
  switch (phase_) {
    case Phase::kPlan:
    case Phase::kName:
    case Phase::kCommit:
    case Phase::kPlanFree:
    case Phase::kFree:
      return OfDisk(RunLocked());
    case Phase::kDeleteOld:
      return Delete(Phase::kNext);
    case Phase::kNext:
      return Next();
    case Phase::kSum:
      return Sum();
    case Phase::kPut:
      return Put();
    case Phase::kCheck:
      return Check();
    case Phase::kCopy:
      return Copy();
    case Phase::kDelete:
      return Delete(Phase::kDone);
    case Phase::kDone:
      break;
  }
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::RunLocked() {
  WorkTurn turn(&work_lock_);
  H5M_RETURN_IF_ERROR(file_->dead());
  switch (phase_) {
    case Phase::kPlan:
      return Plan();
    case Phase::kName:
      return Name();
    case Phase::kCommit:
      return Commit();
    case Phase::kPlanFree:
      return PlanFree();
    default:
      return FreeOne();
  }
}

absl::StatusOr<std::map<uint64_t, uint64_t>> ArchiveJobImpl::SealedOnDisk() {
  // A failed apply may have gone on to another segment without a row for it. After a crash the file
  // goes on with the segment in its row, which must then be on the disk.
  const uint64_t newest = std::min(file_->row().pages_segment, pages_->segment());
  std::map<uint64_t, uint64_t> sealed;
  H5M_ASSIGN_OR_RETURN(const auto entries, files_.tree().List(files_.directory()));
  for (const DirectoryEntry& entry : entries) {
    const auto number = NumberAfter(entry.name, "pages-");
    if (!number || static_cast<uint64_t>(*number) >= newest) continue;
    H5M_ASSIGN_OR_RETURN(const FileStat stat, files_.tree().Stat(files_.HistoryName(entry.name)));
    if (stat.size_bytes > 0) sealed[*number] = static_cast<uint64_t>(stat.size_bytes);
  }
  return sealed;
}

absl::Status ArchiveJobImpl::Plan() {
  H5M_ASSIGN_OR_RETURN(std::vector<ArchivedSegment> rows, index_->ListArchived());
  H5M_RETURN_IF_ERROR(PlanCopy(std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return row.state == ArchiveState::kDeleting;
  })));
  // A copy needs all pages saved up to its version.
  const bool makes_copy = copy_ && request_.copy == ArchiveCopy::kKeep;
  if (request_.seal == SealSegment::kYes || makes_copy) {
    H5M_ASSIGN_OR_RETURN(const auto sealed, SealNewest(*index_, *pages_, file_->row()));
    if (sealed) file_->SetRow(*sealed);
  }
  H5M_ASSIGN_OR_RETURN(auto on_disk, SealedOnDisk());
  std::vector<uint64_t> gone;  // put in part, and pruned meanwhile
  for (ArchivedSegment& row : rows) {
    const bool is_there = on_disk.contains(row.segment);
    if (row.state == ArchiveState::kPutting && is_there) {
      begun_[row.segment] = std::move(row);
      continue;
    }
    on_disk.erase(row.segment);  // It is archived.
    if (row.state == ArchiveState::kArchived) continue;
    if (row.state == ArchiveState::kPutting) gone.push_back(row.segment);
    dead_.Add(std::move(row));
  }
  if (!gone.empty()) {
    H5M_RETURN_IF_ERROR(index_->SetArchiveState(gone, ArchiveState::kDeleting));
  }
  for (const auto& [number, bytes] : on_disk) todo_.push_back(number);
  progress_.segments_to_archive = static_cast<int64_t>(todo_.size());
  phase_ = Phase::kDeleteOld;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::PlanCopy(bool has_dead) {
  H5M_ASSIGN_OR_RETURN(const auto row, index_->FindCopy());
  has_copy_ = row.has_value();
  if (request_.copy == ArchiveCopy::kNone && !has_copy_) return absl::OkStatus();
  copy_.emplace(*file_, *index_, store_);
  if (request_.copy == ArchiveCopy::kNone) {
    copy_->PlanToDelete();
    return absl::OkStatus();
  }
  H5M_ASSIGN_OR_RETURN(const bool is_new, copy_->Plan(has_dead && has_copy_));
  if (!is_new) copy_.reset();
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Copy() {
  if (copy_) {
    H5M_ASSIGN_OR_RETURN(const bool more, copy_->Step());
    progress_.copied_bytes = copy_->put_bytes();
    if (more) return absl::OkStatus();
    if (copy_->is_whole()) progress_.copied_version = copy_->version();
    if (!copy_->left().empty()) progress_.left = copy_->left();
  }
  phase_ = Phase::kDelete;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Delete(Phase next) {
  if (!MayDelete()) {
    phase_ = next;
    return absl::OkStatus();
  }
  const auto more = dead_.Step();
  if (!more.ok()) return OfDisk(more.status());
  if (!*more) phase_ = next;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Next() {
  if (todo_.empty()) {
    phase_ = Phase::kPlanFree;
    return absl::OkStatus();
  }
  current_ = ArchivedSegment();
  current_.segment = todo_.front();
  current_.offset = kSegmentObjectHeaderBytes;
  todo_.pop_front();
  summed_bytes_ = 0;
  has_put_twice_ = false;
  auto file = files_.tree().Open(pages_->SegmentName(current_.segment), OpenKind::kRead, 0);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();  // Pruned meanwhile.
  H5M_RETURN_IF_ERROR(file.status());
  segment_file_ = *std::move(file);
  H5M_ASSIGN_OR_RETURN(current_.length, segment_file_->Size());
  phase_ = Phase::kSum;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Sum() {
  const uint64_t end = std::min(summed_bytes_ + kSumBytes, current_.length);
  std::string piece;
  while (summed_bytes_ < end) {
    piece.resize(std::min(kPieceBytes, end - summed_bytes_));
    H5M_RETURN_IF_ERROR(ReadOrZeros(*segment_file_, summed_bytes_, absl::MakeSpan(piece)));
    current_.crc32c = Crc32cExtend(current_.crc32c, piece);
    summed_bytes_ += piece.size();
  }
  if (summed_bytes_ < current_.length) return absl::OkStatus();
  const auto begun = begun_.find(current_.segment);
  if (begun == begun_.end()) {
    phase_ = Phase::kName;
    return absl::OkStatus();
  }
  // The job that began the object, on this server or another, may have tried to delete it without
  // getting an answer. That deletion may come late, so no later object may have the name.
  H5M_RETURN_IF_ERROR(store_.Delete(begun->second.object, ObjectCache::kGetTimeout));
  begun_.erase(begun);
  phase_ = Phase::kName;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Name() {
  H5M_ASSIGN_OR_RETURN(const bool on_disk, pages_->IsOnDisk(current_.segment));
  if (!on_disk) {  // Pruned meanwhile.
    phase_ = Phase::kNext;
    return absl::OkStatus();
  }
  current_.object = NewSegmentObjectName(files_.file_id(), current_.segment);
  current_.state = ArchiveState::kPutting;
  H5M_RETURN_IF_ERROR(index_->PutArchived(current_));
  phase_ = Phase::kPut;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Put() {
  SegmentObjectSource source(
      SegmentObjectHeader(files_.file_id(), files_.page_size_bytes(), current_), segment_file_,
      current_.length);
  const absl::Status put = store_.Put(current_.object, source, PutTimeout(source.size_bytes()));
  // An existing object is from an earlier try, whole or not: the check finds out.
  if (!put.ok() && !absl::IsAlreadyExists(put)) {
    return OfArchive(put, pages_->SegmentName(current_.segment), &store_, current_.object);
  }
  scan_.emplace(files_, current_);
  phase_ = Phase::kCheck;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::Check() {
  const auto more = scan_->Step();
  if (more.ok()) {
    if (!*more) phase_ = Phase::kCommit;
    return absl::OkStatus();
  }
  if (!absl::IsDataLoss(more.status())) return more.status();
  // The object differs from the bytes put: the job starts over under another name. The deletion may
  // arrive a second time, late.
  H5M_RETURN_IF_ERROR(store_.Delete(current_.object, ObjectCache::kGetTimeout));
  phase_ = Phase::kName;
  if (!std::exchange(has_put_twice_, true)) return absl::OkStatus();
  has_put_twice_ = false;  // So that a caller may retry.
  return more.status();
}

absl::Status ArchiveJobImpl::Commit() {
  H5M_ASSIGN_OR_RETURN(const bool on_disk, pages_->IsOnDisk(current_.segment));
  const ArchiveState state = on_disk ? ArchiveState::kArchived : ArchiveState::kDeleting;
  H5M_RETURN_IF_ERROR(index_->SetArchiveState({&current_.segment, 1}, state));
  current_.state = state;
  if (on_disk) {
    ++progress_.segments_archived;
    progress_.archived_bytes += current_.length;
  } else {  // Pruned meanwhile.
    dead_.Add(current_);
  }
  segment_file_.reset();
  phase_ = Phase::kNext;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::PlanFree() {
  H5M_ASSIGN_OR_RETURN(const std::vector<ArchivedSegment> rows, index_->ListArchived());
  H5M_ASSIGN_OR_RETURN(const auto on_disk, SealedOnDisk());
  uint64_t stay_bytes = 0;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto segment = on_disk.find(row->segment);
    if (segment == on_disk.end() || row->state != ArchiveState::kArchived) continue;
    stay_bytes += segment->second;
    if (stay_bytes > request_.disk_bytes_max) free_.push_front(*segment);  // The oldest first.
  }
  phase_ = free_.empty() ? Phase::kCopy : Phase::kFree;
  return absl::OkStatus();
}

absl::Status ArchiveJobImpl::FreeOne() {
  if (file_->IsKeptOnDisk()) {
    progress_.left =
        "archived segments stay on the disk, as a rollback is not in the head yet, or another call "
        "reads them: try again later";
    phase_ = Phase::kCopy;
    return absl::OkStatus();
  }
  const auto [number, bytes] = free_.front();
  free_.pop_front();
  H5M_ASSIGN_OR_RETURN(const bool on_disk, pages_->IsOnDisk(number));
  H5M_RETURN_IF_ERROR(pages_->Remove(number));
  file_->SegmentRemoved();
  if (on_disk) progress_.freed_bytes += bytes;
  if (free_.empty()) phase_ = Phase::kCopy;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
