#include "onion_store/jobs/archive_check.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace h5mirror::store {
namespace {

constexpr size_t kScanRows = 4096;

// The versions of both.
Readers Joined(const Readers& a, const Readers& b) {
  if (a.second == 0) return b;
  if (b.second == 0) return a;
  return {std::min(a.first, b.first), std::max(a.second, b.second)};
}

}  // namespace

absl::Status ArchiveCheck::Start() {
  H5M_ASSIGN_OR_RETURN(const std::vector<ArchivedSegment> rows, index_.ListArchived());
  for (const ArchivedSegment& row : rows) {
    if (row.state != ArchiveState::kArchived) continue;
    H5M_ASSIGN_OR_RETURN(const bool on_disk, pages_.IsOnDisk(row.segment));
    if (on_disk) continue;
    away_[row.segment] = row;
    // Parts of the whole are of pages elsewhere: here each part has segments.
    if (!findings_.IsWanted(row.segment * kBlockPages)) continue;
    todo_.push_back(row.segment);
    bytes_ += row.length;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ArchiveCheck::Step() {
  if (found_) {
    H5M_RETURN_IF_ERROR(FindReaders());
  } else if (!todo_.empty()) {
    H5M_RETURN_IF_ERROR(ScanSome(away_.at(todo_.front())));
  }
  return found_.has_value() || !todo_.empty();
}

absl::Status ArchiveCheck::ScanSome(const ArchivedSegment& segment) {
  if (!scan_) scan_.emplace(file_.files(), segment);
  const uint64_t before = scan_->done_bytes();
  const absl::StatusOr<bool> more = scan_->Step();
  findings_.progress.checked_bytes += scan_->done_bytes() - before;
  if (more.value_or(false)) return absl::OkStatus();
  // A store without an archive lacks the pages. One whose archive is another one, or not mounted,
  // does not know.
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
