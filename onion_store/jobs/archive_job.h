// Copies sealed segments of one file to the archive, step by step: docs/design/050-archive.md.
//
//   plans --> deletes objects that earlier jobs left
//         --> of each segment: sums up --> names --> puts --> checks --> commits
//         --> removes segments from the disk --> copies head and index (copy_job.h)
//         --> deletes objects --> done
//
// Steps that call the archive hold no lock; the others hold the file's work lock.
#ifndef H5MIRROR_ONION_STORE_JOBS_ARCHIVE_JOB_H_
#define H5MIRROR_ONION_STORE_JOBS_ARCHIVE_JOB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "onion_store/file.h"
#include "onion_store/jobs/copy_job.h"
#include "onion_store/jobs/dead_objects.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/object_scan.h"
#include "onion_store/object_store.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

class ArchiveJobImpl final : public ArchiveJob {
 public:
  // `file` has an archive.
  ArchiveJobImpl(std::shared_ptr<ArchiveSource> file, std::shared_ptr<VersionIndex> index,
                 std::shared_ptr<PageSegments> pages, const ArchiveRequest& request);
  ~ArchiveJobImpl() override;

  absl::StatusOr<ArchiveProgress> Step() override;

 private:
  enum class Phase : uint8_t {
    kPlan,
    kDeleteOld,
    kNext,
    kSum,
    kName,
    kPut,
    kCheck,
    kCommit,
    kPlanFree,
    kFree,
    kCopy,
    kDelete,
    kDone
  };

  // One step of the phase, which may change it.
  absl::Status Run();
  absl::Status RunLocked() ABSL_LOCKS_EXCLUDED(work_lock_);
  absl::Status Plan() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Decides whether a copy is made or deleted. `has_dead`: objects of segments wait to be deleted.
  absl::Status PlanCopy(bool has_dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status Copy();
  // Objects that the last copy may need stay until another one is whole.
  bool MayDelete() const { return !has_copy_ || (copy_ && copy_->is_whole()); }
  absl::Status Delete(Phase next);
  absl::Status Next();
  absl::Status Sum();
  absl::Status Name() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status Put();
  absl::Status Check();
  absl::Status Commit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status PlanFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status FreeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // The durably sealed segments on the disk, by number, with their sizes.
  absl::StatusOr<std::map<uint64_t, uint64_t>> SealedOnDisk()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // `status` of the index or the disk: after most errors the file must be opened again.
  absl::Status OfDisk(absl::Status status);

  const std::shared_ptr<ArchiveSource> file_;
  const HistoryFiles& files_;
  WorkLock& work_lock_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  ObjectStore& store_;
  const ArchiveRequest request_;
  Phase phase_ = Phase::kPlan;
  DeadObjects dead_;
  std::deque<uint64_t> todo_;                  // segments
  std::map<uint64_t, ArchivedSegment> begun_;  // rows of state kPutting
  // Of the segment that is archived now.
  ArchivedSegment current_;
  std::shared_ptr<EnvFile> segment_file_;
  uint64_t summed_bytes_ = 0;
  bool has_put_twice_ = false;
  std::optional<ObjectScan> scan_;
  bool has_copy_ = false;                           // of an earlier job
  std::optional<CopyJob> copy_;                     // to be done
  std::deque<std::pair<uint64_t, uint64_t>> free_;  // segments to delete from the disk, their sizes
  ArchiveProgress progress_;
  MemoryCharge charge_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_ARCHIVE_JOB_H_
