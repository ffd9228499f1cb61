// The verification of one file's history, step by step: docs/design/036-reading-a-version.md.
//
//   index --> stage --> heads --> saved pages --> segments in the archive --> done
#ifndef H5MIRROR_ONION_STORE_JOBS_VERIFY_JOB_H_
#define H5MIRROR_ONION_STORE_JOBS_VERIFY_JOB_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "onion_store/jobs/archive_check.h"
#include "onion_store/jobs/head_check.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/saved_pages_check.h"
#include "onion_store/jobs/verify_findings.h"
#include "onion_store/shared/memory_budget.h"
#include "onion_store/verify.h"

namespace h5mirror::store {

// Each step has the file's work lock: nothing applies, prunes or rolls back meanwhile. Writers and
// readers go on. Only the steps that ask the archive have no lock.
class VerifyJobImpl final : public VerifyJob {
 public:
  VerifyJobImpl(std::shared_ptr<VerifySource> file, std::shared_ptr<VersionIndex> index,
                std::shared_ptr<PageSegments> pages, VerifySubset subset);

  absl::StatusOr<VerifyProgress> Step() override;

 private:
  enum class Phase : uint8_t { kIndex, kStage, kHeads, kPages, kArchive, kDone };

  // One step of the phase. False: it is over.
  absl::StatusOr<bool> RunPhase() ABSL_LOCKS_EXCLUDED(work_lock_);
  absl::StatusOr<bool> RunLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  absl::Status CheckIndex() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  // Checks the stage: its durable cuts that are not in the head have no other copy.
  absl::Status CheckStage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_lock_);
  void ReportIndex(std::string message);

  const std::shared_ptr<VerifySource> file_;
  const HistoryFiles& files_;
  WorkLock& work_lock_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  Phase phase_ = Phase::kIndex;
  const std::shared_ptr<const int> kept_on_disk_;
  VerifyFindings findings_;
  HeadCheck heads_;
  ArchiveCheck archive_;
  SavedPagesCheck saved_;
  MemoryCharge charge_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_VERIFY_JOB_H_
