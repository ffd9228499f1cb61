// Sizes that no head on this file system can have. A cut of such a size is refused. Older stores
// accepted such a cut and made it durable, but could never apply it: docs/design/031-recovery.md.
#include <algorithm>
#include <utility>

#include "base/human.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"

namespace h5mirror::store {

absl::Status StoreContext::CheckFileSize(const std::string& name, uint64_t size_bytes) const {
  const auto refuse = [&](uint64_t max, std::string_view whose) {
    return absl::InvalidArgumentError(StrCat(
        name, ": File too large: a size of ", size_bytes, " bytes (", HumanBytes(size_bytes),
        ") is more than ", whose, " allows for one file: ", max, " bytes (", HumanBytes(max), ")"));
  };
  if (size_bytes > head_bytes_max()) {
    return refuse(head_bytes_max(), "the file system of the head");
  }
  const uint64_t by_process = file_sizes.process_bytes / kPageBytesMax * kPageBytesMax;
  if (size_bytes > by_process) {
    return refuse(by_process,
                  "the limit of the process that writes the head (ulimit -f, LimitFSIZE=)");
  }
  return absl::OkStatus();
}

// Such cuts are applied as far as possible, so that later cuts get into the head. The first later
// cut is a rollback to the newest version that fits. After a crash before that cut is durable,
// everything is as it was. After a crash later, only rows are left to drop.
absl::Status FileImpl::GoBackToFit() {
  if (context_->file_sizes.bytes == INT64_MAX) return absl::OkStatus();
  const uint64_t max = context_->head_bytes_max();
  std::shared_ptr<VersionIndex> index;
  FileRow row;
  {
    absl::MutexLock lock(&mutex_);
    index = index_;
    row = row_;
  }
  // None of them was ever in a head.
  H5M_ASSIGN_OR_RETURN(const std::vector<VersionNumber> oversize, index->LargerThan(max));
  if (oversize.empty() && row.durable_size_bytes <= max) return absl::OkStatus();
  std::string text;
  if (row.durable_size_bytes > max) {
    H5M_RETURN_IF_ERROR(ReserveNumbers());
    H5M_ASSIGN_OR_RETURN(const VersionInfo made, LeaveOversize(*index, row));
    text = StrCat("goes on as version ", made.version, ": its newest durable cut had ",
                  row.durable_size_bytes, " bytes, and the file system of the head allows ", max,
                  " for one file; ", made.provenance.comment);
  } else {
    H5M_RETURN_IF_ERROR(ClipLayers());
    text = StrCat("lost versions that were larger than the ", max,
                  " bytes which the file system of the head allows for one file");
  }
  if (!oversize.empty()) {
    StrAppend(&text, "; dropped: version", oversize.size() == 1 ? " " : "s ");
    for (size_t i = 0; i < oversize.size(); ++i) {
      StrAppend(&text, i == 0 ? "" : ", ", oversize[i]);
    }
    H5M_RETURN_IF_ERROR(index->DropVersions(oversize));
  }
  context_->TellNotice(StoreNotice::Kind::kWentBack, files_.name(), std::move(text));
  return absl::OkStatus();
}

absl::StatusOr<VersionInfo> FileImpl::LeaveOversize(VersionIndex& index, const FileRow& row) {
  const uint64_t max = context_->head_bytes_max();
  H5M_ASSIGN_OR_RETURN(const VersionNumber fitting, index.NewestUpTo(max));
  if (fitting == 0) {
    return absl::DataLossError(
        StrCat(files_.name(), ": its newest cut has a size of ", row.durable_size_bytes,
               " bytes, which is more than the file system of the head allows for one file, ", max,
               " bytes, and no version is smaller; h5mirror rm takes it out of the way"));
  }
  H5M_ASSIGN_OR_RETURN(const VersionInfo target, GetVersion(fitting));
  Provenance provenance;
  provenance.comment = StrCat("went back to version ", fitting, " from a size of ",
                              row.durable_size_bytes, " bytes");
  // No other thread has the file yet, so this call may wait for the archive.
  std::shared_ptr<const int> kept;
  {
    absl::MutexLock lock(&mutex_);
    kept = saved_.disk_pin();
  }
  H5M_RETURN_IF_ERROR(BringBackSince(index, target.generation, target.version));
  // The rollback reverts the changes of these cuts. If it needs a new generation, it copies all
  // bytes, once these cuts are in the old head.
  const bool same = target.generation == row.generation;
  if (!same) H5M_RETURN_IF_ERROR(ClipLayers());
  H5M_ASSIGN_OR_RETURN(VersionInfo made, RollbackLocked(target, provenance, RandomBytes16()));
  if (same) H5M_RETURN_IF_ERROR(ClipLayers());
  return made;
}

absl::Status FileImpl::ClipLayers() {
  const uint64_t max = context_->head_bytes_max();
  absl::MutexLock lock(&mutex_);
  for (const LayerPtr& layer : cuts_.layers) {
    if (layer->size_bytes <= max) continue;
    layer->size_bytes =
        std::min(max, std::max(row_.applied_size_bytes, layer->data.direct_end_max()));
    layer->version = 0;
    H5M_RETURN_IF_ERROR(layer->data.Truncate(layer->size_bytes));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
