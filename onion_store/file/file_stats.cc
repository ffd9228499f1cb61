// The disk space of versions, and the space that dropping some would free.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/jobs/estimate_job.h"

namespace h5mirror::store {
namespace {

constexpr size_t kStepRows = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<EstimateJob>> FileImpl::StartEstimate(
    const std::vector<std::vector<VersionNumber>>& plans) {
  H5M_ASSIGN_OR_RETURN(const VersionNumber needed, OldestNeeded());
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  std::vector<std::vector<VersionNumber>> rising;
  for (std::vector<VersionNumber> plan : plans) {
    plan.erase(std::remove_if(plan.begin(), plan.end(),
                              [needed](VersionNumber version) { return version >= needed; }),
               plan.end());
    std::sort(plan.begin(), plan.end());
    rising.push_back(std::move(plan));
  }
  absl::MutexLock lock(&mutex_);
  return std::make_unique<EstimateJobImpl>(shared_from_this(), index, Pages(), row_.generation,
                                           std::move(rising));
}

absl::StatusOr<uint64_t> FileImpl::SavedBytes(const VersionInfo& version) {
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return uint64_t{0};
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    pages = Pages();
  }
  uint64_t bytes = 0;
  PagesCursor cursor{version.generation, -1, 0, version.version};
  for (bool more = true; more;) {
    std::vector<PageRun> runs;
    H5M_ASSIGN_OR_RETURN(more, index->ScanVersionRows(kStepRows, &cursor, &runs));
    for (const PageRun& run : runs) bytes += pages->DiskBytes(run);
  }
  return bytes;
}

bool FileImpl::HistoryStopped() {
  if (!context_->history_stops.Has(files_.name())) return false;
  absl::MutexLock lock(&mutex_);
  return newest_.version != 0;
}

}  // namespace h5mirror::store
