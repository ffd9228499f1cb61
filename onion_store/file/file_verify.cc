// Checking the history of a file: docs/design/036-reading-a-version.md.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/jobs/verify_job.h"

namespace h5mirror::store {

VersionNumber FileImpl::NewestVersion() {
  absl::MutexLock lock(&mutex_);
  return newest_.version;
}

uint64_t FileImpl::SavedPagesBytes() {
  absl::MutexLock lock(&mutex_);
  return saved_.SealedBytes(row_) + row_.pages_end_bytes;
}

bool FileImpl::HasPartOfApply() {
  absl::MutexLock lock(&mutex_);
  return std::any_of(cuts_.layers.begin(), cuts_.layers.end(),
                     [](const LayerPtr& layer) { return layer->durable && layer->recovered; });
}

absl::StatusOr<std::shared_ptr<Generation>> FileImpl::HeadOf(int64_t number) {
  const std::string name = HeadName(number);
  absl::MutexLock lock(&mutex_);
  if (cuts_.base != nullptr && cuts_.base->number == number) return cuts_.base;
  return OpenGeneration(number, name, OpenKind::kRead);
}

absl::StatusOr<std::unique_ptr<VerifyJob>> FileImpl::StartVerify(VerifySubset subset) {
  if (subset.count < 1 || subset.count > 1'000'000 || subset.part < 1 ||
      subset.part > subset.count) {
    return absl::InvalidArgumentError(StrCat("part ", subset.part, " of ", subset.count,
                                             " is none: 1 <= part <= count <= 1000000"));
  }
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    pages = Pages();
  }
  return std::make_unique<VerifyJobImpl>(shared_from_this(), index, pages, subset);
}

}  // namespace h5mirror::store
