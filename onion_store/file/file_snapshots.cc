// Cuts that readers pin: docs/design/003-cuts-and-pins.md.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/file/pins/snapshot.h"

namespace h5mirror::store {
CutNumber FileImpl::NewestCut() {
  absl::MutexLock lock(&mutex_);
  return cuts_.last.number;
}

absl::StatusOr<std::shared_ptr<Snapshot>> FileImpl::PinNewestCut() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(health_.dead());
  if (cuts_.last.number == 0 || cuts_.base == nullptr) {
    return absl::NotFoundError(StrCat(files_.name(), " has no cut yet, nothing to read"));
  }
  std::shared_ptr<PinnedCut> pin = pins_.Hold(cuts_.last.number);
  if (pin == nullptr) pin = NewPin();
  CutInfo info = pin->info;
  if (LastIsVersion()) info.version = newest_.version;
  info.of_group = newest_.group || (!cuts_.layers.empty() && cuts_.layers.back()->group);
  return std::make_shared<SnapshotImpl>(shared_from_this(), std::move(pin), info);
}

std::shared_ptr<PinnedCut> FileImpl::NewPin() {
  const CutInfo info{cuts_.last.number,
                     cuts_.last.size_bytes,
                     cuts_.base->number,
                     cuts_.last.time,
                     0,
                     cuts_.last.written_bytes,
                     cuts_.last.barrier.session_id};
  return pins_.Pin(info, cuts_.base, cuts_.LayersOf(*cuts_.base), files_.page_size_bytes());
}

void FileImpl::NoteChanges() {
  absl::MutexLock lock(&mutex_);
  change_log_.Follow(cuts_.last.number);
}

absl::StatusOr<std::vector<Extent>> FileImpl::ChangesBetween(CutNumber from, CutNumber to) {
  absl::MutexLock lock(&mutex_);
  return change_log_.Between(from, to);
}

absl::Status FileImpl::ReadLayers(absl::FunctionRef<absl::Status()> read) {
  absl::ReaderMutexLock lock(&merge_mutex_);
  return read();
}

SumsFile* FileImpl::SumsOf(const Generation& generation) {
  absl::MutexLock lock(&mutex_);
  return generation.sums.get();
}

std::vector<std::shared_ptr<PinnedPages>> FileImpl::PinnedPagesSince(uint64_t first,
                                                                     int64_t generation) {
  return pinned_pages_.Since(first, generation);
}

void FileImpl::Unpin(const std::shared_ptr<PinnedCut>& pin) {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  if (pins_.Release(pin)) DropPin(pin->info.cut, &trash);
}

void FileImpl::ExpirePin(const std::shared_ptr<PinnedCut>& pin) {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  if (pins_.Has(pin)) DropPin(pin->info.cut, &trash);
}

void FileImpl::DropPin(CutNumber cut, Trash* trash) {
  trash->push_back(pins_.Drop(cut));
  MergeAt(cut);
}

void FileImpl::MergeAt(CutNumber cut) {
  if (!health_.dead().ok()) return;
  const auto lower = std::find_if(cuts_.layers.begin(), cuts_.layers.end(),
                                  [&](const LayerPtr& layer) { return layer->cut == cut; });
  if (lower == cuts_.layers.end()) return;
  const auto upper = std::next(lower);
  if (upper == cuts_.layers.end() || !MayMerge(**lower, **upper)) return;
  if (MergeInto(**lower, **upper).ok()) cuts_.layers.erase(upper);
}

PagesToPin FileImpl::PagesToSave(const CutLayer& layer) {
  absl::MutexLock lock(&mutex_);
  return pins_.PagesBefore(layer.cut, layer.generation->number, files_.page_size_bytes());
}

void FileImpl::ExpireOverBudget() {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  while (pins_.oldest() &&
         pins_.DiskBytes(stage_->segments()) > context_->options.snapshot_max_bytes) {
    DropPin(*pins_.oldest(), &trash);
  }
}

void FileImpl::ExpireBefore(CutNumber cut) {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  while (pins_.oldest() && *pins_.oldest() < cut) DropPin(*pins_.oldest(), &trash);
}

}  // namespace h5mirror::store
