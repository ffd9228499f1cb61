// Estimates how much prunes of one file would free, step by step.
#ifndef H5MIRROR_ONION_STORE_JOBS_ESTIMATE_JOB_H_
#define H5MIRROR_ONION_STORE_JOBS_ESTIMATE_JOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/file.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/planned_prune.h"
#include "onion_store/pages/page_blocks.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

class EstimateJobImpl final : public EstimateJob {
 public:
  // `plans`: the versions that each prune drops, rising. A prune may remove heads of generations
  // before `newest_generation`.
  EstimateJobImpl(std::shared_ptr<EstimateSource> file, std::shared_ptr<VersionIndex> index,
                  std::shared_ptr<PageSegments> pages, int64_t newest_generation,
                  std::vector<std::vector<VersionNumber>> plans);

  absl::StatusOr<bool> Step() override;
  const std::vector<uint64_t>& freed_bytes() const override { return freed_bytes_; }

 private:
  absl::StatusOr<bool> LoadVersions();
  void Charge(size_t rows_bytes);
  void TakeBlock();
  absl::Status AddUp();

  const std::shared_ptr<EstimateSource> file_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  const int64_t newest_generation_;
  const std::vector<std::vector<VersionNumber>> doomed_;  // by plan, rising
  std::vector<VersionSize> versions_;                     // rising
  std::vector<PlannedPrune> plans_;                       // once all versions are known
  std::unique_ptr<PageBlocks> blocks_;
  int64_t generation_ = 0;  // of blocks_, or the last one that was done
  std::vector<uint64_t> freed_bytes_;
  MemoryCharge charge_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_ESTIMATE_JOB_H_
