// Segments of saved pages in an archive: docs/design/050-archive.md.
#include <utility>
#include <vector>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/history_sizes.h"
#include "onion_store/jobs/archive_job.h"
#include "onion_store/jobs/segment_recall.h"

namespace h5mirror::store {
namespace {

// As with a prune's copies, the rest of the disk is for writers.
absl::Status CheckRoomToRecall(const HistoryFiles& files, size_t count, uint64_t bytes) {
  H5M_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytesOf(files.tree()));
  if (bytes <= RoomToCopy(free_bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat(files.name(), ": to bring ", count, count == 1 ? " segment" : " segments",
             " of old pages back from the archive ", "takes ", bytes, " bytes (", HumanBytes(bytes),
             "), and ", free_bytes, " (", HumanBytes(free_bytes),
             ") are free, of which a quarter is left to writers"));
}

}  // namespace

bool FileImpl::IsKeptOnDisk() {
  absl::MutexLock lock(&mutex_);
  return saved_.IsKeptOnDisk();
}

void FileImpl::ArchiveEnded() {
  absl::MutexLock lock(&mutex_);
  saved_.EndArchive();
}

absl::StatusOr<std::unique_ptr<ArchiveJob>> FileImpl::StartArchive(const ArchiveRequest& request) {
  if (files_.objects().store() == nullptr) {
    return absl::FailedPreconditionError(StrCat(files_.name(), ": this store has no archive"));
  }
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (!saved_.BeginArchive()) {
      return absl::FailedPreconditionError(StrCat(files_.name(), ": it is being archived already"));
    }
    pages = Pages();
  }
  return std::make_unique<ArchiveJobImpl>(shared_from_this(), index, pages, request);
}

absl::StatusOr<uint64_t> FileImpl::CountArchived() {
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  uint64_t bytes = 0;
  if (index == nullptr) return bytes;
  H5M_ASSIGN_OR_RETURN(const std::vector<ArchivedSegment> rows, index->ListArchived());
  for (const ArchivedSegment& row : rows) {
    if (row.state != ArchiveState::kDeleting) bytes += row.length;
  }
  return bytes;
}

// An archive job looks for pins and removes a segment from the disk under the work lock. So a job
// that did not see this pin has removed its segment before the pin is there.
std::shared_ptr<const int> FileImpl::PinDisk() {
  if (files_.objects().store() == nullptr) return nullptr;  // Nothing leaves the disk.
  WorkTurn turn(&work_lock_);
  absl::MutexLock lock(&mutex_);
  return saved_.disk_pin();
}

absl::StatusOr<std::shared_ptr<const void>> FileImpl::KeepOnDisk(VersionNumber oldest) {
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<const int> pin, KeepOnDiskOf(0, oldest));
  return std::shared_ptr<const void>(std::move(pin));
}

absl::StatusOr<std::shared_ptr<const int>> FileImpl::KeepOnDiskOf(int64_t generation,
                                                                  VersionNumber oldest) {
  // Without an archive a read of an archived segment fails, and waits for nothing.
  if (files_.objects().store() == nullptr) return nullptr;
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  std::shared_ptr<const int> pin = PinDisk();
  if (index != nullptr) H5M_RETURN_IF_ERROR(BringBackSince(*index, generation, oldest));
  return pin;
}

absl::Status FileImpl::BringBackSince(VersionIndex& index, int64_t generation,
                                      VersionNumber oldest) {
  H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> segments,
                       index.ArchivedSince(generation, oldest));
  if (segments.empty()) return absl::OkStatus();
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    pages = Pages();
  }
  std::vector<ArchivedSegment> away;
  uint64_t bytes = 0;
  for (const uint64_t number : segments) {
    H5M_ASSIGN_OR_RETURN(const bool on_disk, pages->IsOnDisk(number));
    if (on_disk) continue;
    H5M_ASSIGN_OR_RETURN(auto segment, index.FindArchived(number));
    // No row names a segment without an object any more.
    if (!segment || segment->state != ArchiveState::kArchived) continue;
    bytes += segment->length;
    away.push_back(*std::move(segment));
  }
  if (away.empty()) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(CheckRoomToRecall(files_, away.size(), bytes));
  for (const ArchivedSegment& segment : away) {
    H5M_RETURN_IF_ERROR(RecallSegment(files_, segment, pages->SegmentName(segment.segment)));
    absl::MutexLock lock(&mutex_);
    saved_.CountAnew();
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
