// Dropping versions of a file: docs/design/032-pruning.md.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/history_names.h"
#include "onion_store/jobs/prune_job.h"

namespace h5mirror::store {

FileRow FileImpl::row() {
  absl::MutexLock lock(&mutex_);
  return row_;
}

void FileImpl::SetRow(const FileRow& row) {
  absl::MutexLock lock(&mutex_);
  row_ = row;
}

void FileImpl::SegmentRemoved() {
  absl::MutexLock lock(&mutex_);
  saved_.CountAnew();
}

void FileImpl::ForgetGenerations(absl::Span<const int64_t> generations) {
  absl::MutexLock lock(&mutex_);
  for (int64_t generation : generations) cuts_.old_generations.erase(generation);
}

bool FileImpl::HasReverts() {
  absl::MutexLock lock(&mutex_);
  return saved_.HasReverts();
}

void FileImpl::PruneEnded() {
  absl::MutexLock lock(&mutex_);
  saved_.EndPrune();
}

absl::StatusOr<VersionNumber> FileImpl::OldestNeeded() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  // Before the first apply the head holds no version: all are needed.
  return row_.applied_version == 0 ? std::min<VersionNumber>(newest_.version, 1)
                                   : row_.applied_version;
}

absl::StatusOr<std::unique_ptr<PruneJob>> FileImpl::StartPrune(
    std::vector<VersionNumber> versions) {
  H5M_ASSIGN_OR_RETURN(const VersionNumber needed, OldestNeeded());
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) {
    return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  std::vector<VersionNumber> there;
  for (VersionNumber version : versions) {
    if (version >= needed) break;  // The version needed only rises.
    H5M_ASSIGN_OR_RETURN(const bool has, index->HasVersion(version));
    if (has) there.push_back(version);
  }
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(health_.dead());
    if (!saved_.BeginPrune()) {
      return absl::FailedPreconditionError(
          StrCat(files_.name(), ": a prune of it is under way already"));
    }
    pages = Pages();
  }
  auto job = std::make_unique<PruneJobImpl>(shared_from_this(), index, pages, std::move(there));
  // Only a hint, so that a server continues the prune after a crash. Without it the next prune
  // does.
  files_.SetMark(kPruneMarks);
  return job;
}

}  // namespace h5mirror::store
