// A prune of one file, step by step: docs/design/032-pruning.md.
//
//   drops versions, moves rows --> surveys segments, seals the newest --> copies and removes them
//     --> notes dead objects --> removes generations --> shrinks the index
//     --> deletes dead objects of the archive, without a lock --> done
//
// While the job lives, no segment goes from the disk into the archive. Each job finds the remaining
// work by itself, so none needs the job before.
#ifndef H5MIRROR_ONION_STORE_JOBS_PRUNE_JOB_H_
#define H5MIRROR_ONION_STORE_JOBS_PRUNE_JOB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "onion_store/file.h"
#include "onion_store/jobs/dead_objects.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/segment_copy.h"
#include "onion_store/jobs/segment_survey.h"
#include "onion_store/jobs/version_drop.h"

namespace h5mirror::store {

// Each step but those that delete objects has the file's work lock, as all have that change rows,
// segments or the head.
class PruneJobImpl final : public PruneJob {
 public:
  // `versions`: those to drop, as VersionDrop wants them. Takes the work lock, if there is an
  // archive.
  PruneJobImpl(std::shared_ptr<PruneSource> file, std::shared_ptr<VersionIndex> index,
               std::shared_ptr<PageSegments> pages, std::vector<VersionNumber> versions);
  ~PruneJobImpl() override;

  absl::StatusOr<PruneProgress> Step() override;

 private:
  enum class Phase : uint8_t {
    kDrop,
    kSurvey,
    kCopy,
    kMarkObjects,
    kGenerations,
    kShrink,
    kObjects,
    kDone
  };

  // One step of the phase. False: it is over.
  absl::StatusOr<bool> RunPhase() ABSL_LOCKS_EXCLUDED(work_lock_);
  absl::StatusOr<bool> RunLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::StatusOr<bool> Survey() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status SealNewest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::StatusOr<bool> MarkObjects() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::StatusOr<bool> DeleteObject();
  absl::StatusOr<bool> RemoveGenerations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::StatusOr<bool> Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  PruneProgress Progress() const;

  const std::shared_ptr<PruneSource> file_;
  const HistoryFiles& files_;
  WorkLock& work_lock_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  Phase phase_ = Phase::kDrop;
  // A survey does not see segments that begin after it. If an archive job removed such a segment
  // from the disk, it would look dead; and a copy would wait for the archive.
  const std::shared_ptr<const int> kept_on_disk_;
  VersionDrop drop_;
  SegmentSurvey survey_;
  SegmentCopy copy_;
  DeadObjects objects_;
  uint64_t generations_bytes_ = 0;  // of those that were removed
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_PRUNE_JOB_H_
