#include "onion_store/jobs/dead_objects.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/object_store.h"

namespace h5mirror::store {
namespace {

constexpr absl::Duration kDeleteTimeout = absl::Seconds(30);

}  // namespace

absl::Status DeadObjects::Mark(PageSegments& pages, DroppedVersions& dropped,
                               absl::FunctionRef<bool(uint64_t segment)> has_rows) {
  auto rows = index_.ListArchived();
  if (absl::IsDataLoss(rows.status())) {  // The rest of a prune does not need this.
    left_ = std::string(rows.status().message());
    return absl::OkStatus();
  }
  H5M_RETURN_IF_ERROR(rows.status());
  std::vector<uint64_t> numbers;
  for (ArchivedSegment& row : *rows) {
    if (row.state == ArchiveState::kPutting) continue;  // The archive job takes care of it.
    if (row.state == ArchiveState::kArchived) {
      H5M_ASSIGN_OR_RETURN(const bool on_disk, pages.IsOnDisk(row.segment));
      if (on_disk || has_rows(row.segment)) continue;
      numbers.push_back(row.segment);
    }
    dead_.push_back(std::move(row));
  }
  if (numbers.empty()) return absl::OkStatus();
  // A reader that has old rows, and then finds no object, looks again.
  dropped.Advance();
  return index_.SetArchiveState(numbers, ArchiveState::kDeleting);
}

absl::StatusOr<bool> DeadObjects::Step() {
  if (dead_.empty()) return false;
  const ArchivedSegment segment = std::move(dead_.front());
  dead_.pop_front();
  ObjectStore* const store = files_.objects().store();
  const absl::Status deleted = store == nullptr
                                   ? absl::FailedPreconditionError("this store has no archive")
                                   : store->Delete(segment.object, kDeleteTimeout);
  if (!deleted.ok()) {
    left_ =
        StrCat(dead_.size() + 1, " objects of the archive are not deleted yet, of which one is ",
               segment.object, ": ", ToStd(deleted.message()));
    dead_.clear();
    return false;
  }
  files_.objects().Forget(segment.object);
  H5M_RETURN_IF_ERROR(index_.DropArchived(segment));
  ++deleted_count_;
  return !dead_.empty();
}

}  // namespace h5mirror::store
