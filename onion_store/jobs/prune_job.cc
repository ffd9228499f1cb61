#include "onion_store/jobs/prune_job.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "onion_store/history_names.h"
#include "onion_store/history_sizes.h"
#include "onion_store/jobs/segment_seal.h"

namespace h5mirror::store {

PruneJobImpl::PruneJobImpl(std::shared_ptr<PruneSource> file, std::shared_ptr<VersionIndex> index,
                           std::shared_ptr<PageSegments> pages, std::vector<VersionNumber> versions)
    : file_(std::move(file)),
      files_(file_->files()),
      work_lock_(file_->work_lock()),
      index_(std::move(index)),
      pages_(std::move(pages)),
      kept_on_disk_(file_->PinDisk()),
      drop_(*index_, file_->dropped_versions(), files_.page_size_bytes(), std::move(versions)),
      survey_(files_, *index_, *pages_),
      copy_(*file_, *index_, *pages_),
      objects_(files_, *index_) {}

PruneJobImpl::~PruneJobImpl() { file_->PruneEnded(); }

absl::StatusOr<PruneProgress> PruneJobImpl::Step() {
  H5M_RETURN_IF_ERROR(file_->dead());
  const absl::StatusOr<bool> more = RunPhase();
  if (!more.ok()) {
    // After a failed sync the content of the disk is unknown.
    if (!absl::IsResourceExhausted(more.status())) file_->Die(more.status());
    return more.status();
  }
  if (!*more) phase_ = static_cast<Phase>(static_cast<uint8_t>(phase_) + 1);
  if (phase_ == Phase::kDone) files_.RemoveMark(kPruneMarks);
  return Progress();
}

absl::StatusOr<bool> PruneJobImpl::RunPhase() {
  if (phase_ == Phase::kObjects) return DeleteObject();
  WorkTurn turn(&work_lock_);
  H5M_RETURN_IF_ERROR(file_->dead());
  return RunLocked();
}

absl::StatusOr<bool> PruneJobImpl::RunLocked() {
  switch (phase_) {
    case Phase::kDrop:
      return drop_.Step();
    case Phase::kSurvey:
      return Survey();
    case Phase::kCopy:
      return copy_.Step();
    case Phase::kMarkObjects:
      return MarkObjects();
    case Phase::kGenerations:
      return RemoveGenerations();
    case Phase::kShrink:
      return Shrink();
    case Phase::kObjects:
    case Phase::kDone:
      break;
  }
  return true;
}

PruneProgress PruneJobImpl::Progress() const {
  const int64_t freed = copy_.freed_bytes() + static_cast<int64_t>(generations_bytes_);
  return {.versions_dropped = drop_.versions_done(),
          .versions_to_drop = drop_.versions_to_drop(),
          .freed_bytes = static_cast<uint64_t>(std::max<int64_t>(0, freed)),
          .done = phase_ == Phase::kDone,
          .left = copy_.left().empty() ? objects_.left() : copy_.left()};
}

absl::StatusOr<bool> PruneJobImpl::Survey() {
  H5M_ASSIGN_OR_RETURN(const bool more, survey_.Step());
  if (more) return true;
  H5M_ASSIGN_OR_RETURN(std::vector<SegmentSpace> dead, survey_.DeadEnough());
  const auto newest = std::find_if(dead.begin(), dead.end(), [this](const SegmentSpace& segment) {
    return segment.number == pages_->segment();
  });
  if (newest != dead.end()) H5M_RETURN_IF_ERROR(SealNewest());
  // An empty segment stays in use. After a crash so does a segment that only a failed apply has
  // left.
  std::erase_if(dead, [first = file_->row().pages_segment](const SegmentSpace& segment) {
    return segment.number >= first;
  });
  copy_.Start(std::move(dead));
  return false;
}

absl::Status PruneJobImpl::SealNewest() {
  H5M_ASSIGN_OR_RETURN(const auto sealed, store::SealNewest(*index_, *pages_, file_->row()));
  if (sealed) file_->SetRow(*sealed);
  return absl::OkStatus();
}

absl::StatusOr<bool> PruneJobImpl::DeleteObject() {
  // A copy in the archive may need the objects: they go once the next copy is whole.
  H5M_ASSIGN_OR_RETURN(const auto copy, index_->FindCopy());
  if (copy) return false;
  return objects_.Step();
}

absl::StatusOr<bool> PruneJobImpl::MarkObjects() {
  H5M_RETURN_IF_ERROR(objects_.Mark(*pages_, file_->dropped_versions(), [this](uint64_t segment) {
    return survey_.HasRows(segment) && !copy_.HasRemoved(segment);
  }));
  return false;
}

absl::StatusOr<bool> PruneJobImpl::RemoveGenerations() {
  const int64_t newest = file_->row().generation;
  H5M_ASSIGN_OR_RETURN(const std::vector<int64_t> unused, index_->UnusedGenerations(newest));
  for (int64_t generation : unused) {
    H5M_RETURN_IF_ERROR(index_->DropGeneration(generation));
  }
  file_->ForgetGenerations(unused);
  H5M_ASSIGN_OR_RETURN(const std::vector<int64_t> retained, index_->Generations());
  H5M_ASSIGN_OR_RETURN(auto entries, files_.tree().List(files_.directory()));
  for (const DirectoryEntry& entry : entries) {
    const auto number = GenerationOfEntry(entry.name);
    if (!number || *number >= newest ||
        std::find(retained.begin(), retained.end(), *number) != retained.end()) {
      continue;
    }
    const std::string name = files_.HistoryName(entry.name);
    const uint64_t bytes = DataBytes(files_.tree(), name);
    H5M_RETURN_IF_ERROR(files_.tree().Remove(name));
    generations_bytes_ += bytes;
  }
  return false;
}

absl::StatusOr<bool> PruneJobImpl::Shrink() {
  H5M_ASSIGN_OR_RETURN(const bool more, index_->Shrink());
  if (!more) H5M_RETURN_IF_ERROR(index_->Checkpoint());
  return more;
}

}  // namespace h5mirror::store
