// Cuts that readers hold on to: docs/design/003-cuts-and-pins.md.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/file/snapshot.h"

namespace h5mirror::store {
namespace {

// Followers that the last server had come back within seconds; the writer may be there before them.
constexpr absl::Duration kReturnMax = absl::Minutes(1);
// Until then, for each file: some 100 KiB, 400 KiB of cuts with one range each.
constexpr size_t kExtentsUnasked = 1 << 12;

}  // namespace

CutNumber FileImpl::NewestCut() {
  absl::MutexLock lock(&mutex_);
  return last_cut_;
}

absl::StatusOr<std::shared_ptr<Snapshot>> FileImpl::PinNewestCut() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(dead_);
  if (last_cut_ == 0 || base_ == nullptr) {
    return absl::NotFoundError(StrCat(name_, " has no cut yet, nothing to read"));
  }
  std::shared_ptr<PinnedCut>& pin = pinned_[last_cut_];
  if (pin == nullptr) pin = NewPin();
  ++pin->holder_count;
  CutInfo info = pin->info;
  if (LastIsVersion()) info.version = newest_.version;
  return std::make_shared<SnapshotImpl>(shared_from_this(), pin, info);
}

std::shared_ptr<PinnedCut> FileImpl::NewPin() {
  std::vector<LayerPtr> layers;
  for (const LayerPtr& layer : layers_) {
    if (layer->generation == base_) layers.push_back(layer);
  }
  auto pin = std::make_shared<PinnedCut>();
  pin->info = {last_cut_, last_size_, base_->number, last_cut_time_, 0, written_bytes_};
  absl::MutexLock lock(&pin->mutex);
  pin->content_or_null = std::make_shared<const PinnedContent>(base_, std::move(layers),
                                                               StartPinnedPages(base_->number));
  return pin;
}

void FileImpl::NoteChanges() {
  absl::MutexLock lock(&mutex_);
  log_unasked_until_.reset();
  change_log_.SetExtentsMax(ChangeLog::kExtentsMax);
  if (!change_log_.started()) change_log_.Start(last_cut_);
}

void FileImpl::ExpectFollowers() {
  absl::MutexLock lock(&mutex_);
  log_unasked_until_ = context_->env.Now() + kReturnMax;
  change_log_.SetExtentsMax(kExtentsUnasked);
  change_log_.Start(last_cut_);
}

absl::StatusOr<std::vector<Extent>> FileImpl::ChangesBetween(CutNumber from, CutNumber to) {
  absl::MutexLock lock(&mutex_);
  return change_log_.Between(from, to);
}

void FileImpl::LogChanges(CutNumber cut, const CutLayer& layer) {
  if (!change_log_.started()) return;
  if (log_unasked_until_.has_value() && context_->env.Now() > *log_unasked_until_) {
    return change_log_.Stop();
  }
  // A layer that did not fit into memory would have to be read back.
  if (layer.begins_generation || layer.data.is_spilled()) return change_log_.AddWhole(cut);
  ExtentSet changed = layer.data.direct();
  changed.Unbound();
  for (uint64_t at = 0;;) {
    const auto staged = layer.data.NextStaged(at);
    if (!staged.ok()) return change_log_.AddWhole(cut);
    if (!staged->has_value()) break;
    changed.Add(**staged);
    at = (*staged)->end();
    if (changed.extent_count() > change_log_.extents_max()) return change_log_.AddWhole(cut);
  }
  const uint64_t end = std::max(last_size_, open_size_);
  if (layer.data.truncated_to() < end) {
    changed.Add({layer.data.truncated_to(), end - layer.data.truncated_to()});
  }
  change_log_.Add(cut, std::move(changed));
}

void FileImpl::Unpin(const std::shared_ptr<PinnedCut>& pin) {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  if (--pin->holder_count > 0) return;
  const auto found = pinned_.find(pin->info.cut);
  if (found != pinned_.end() && found->second == pin) DropPin(pin->info.cut, &trash);
}

void FileImpl::ExpirePin(const std::shared_ptr<PinnedCut>& pin) {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  const auto found = pinned_.find(pin->info.cut);
  if (found != pinned_.end() && found->second == pin) DropPin(pin->info.cut, &trash);
}

void FileImpl::DropPin(CutNumber cut, Trash* trash) {
  const auto found = pinned_.find(cut);
  trash->push_back(found->second->Expire());
  pinned_.erase(found);
  DropPinnedPages();
  MergeAt(cut);
}

void FileImpl::MergeAt(CutNumber cut) {
  if (!dead_.ok()) return;
  const auto lower = std::find_if(layers_.begin(), layers_.end(),
                                  [&](const LayerPtr& layer) { return layer->cut == cut; });
  if (lower == layers_.end()) return;
  const auto upper = std::next(lower);
  if (upper == layers_.end() || !MayMerge(**lower, **upper)) return;
  if (MergeInto(**lower, **upper).ok()) layers_.erase(upper);
}

FileImpl::SavedPages FileImpl::PagesToSave(const CutLayer& layer) {
  SavedPages saving;
  absl::MutexLock lock(&mutex_);
  for (const auto& [cut, pin] : pinned_) {
    if (cut >= layer.cut) break;
    if (pin->info.generation != layer.generation->number) continue;
    saving.limit_pages = std::max(saving.limit_pages, PagesIn(pin->info.size_bytes));
  }
  if (saving.limit_pages == 0) return saving;
  absl::MutexLock keep(&pinned_pages_mutex_);
  for (const auto& pages : pinned_pages_) {
    if (pages->generation() == layer.generation->number) saving.pages = pages;
  }
  return saving;
}

uint64_t FileImpl::StartPinnedPages(int64_t generation) {
  absl::MutexLock lock(&pinned_pages_mutex_);
  const bool is_fresh = !pinned_pages_.empty() &&
                        pinned_pages_.back()->generation() == generation &&
                        pinned_pages_.back()->empty();
  if (!is_fresh) {
    pinned_pages_.push_back(std::make_shared<PinnedPages>(
        context_->budget, *context_->tree, directory_, generation, page_size_bytes_));
  }
  return pinned_pages_first_ + pinned_pages_.size() - 1;
}

std::vector<std::shared_ptr<PinnedPages>> FileImpl::PinnedPagesSince(uint64_t first,
                                                                     int64_t generation) {
  std::vector<std::shared_ptr<PinnedPages>> found;
  absl::MutexLock lock(&pinned_pages_mutex_);
  for (uint64_t i = first < pinned_pages_first_ ? 0 : first - pinned_pages_first_;
       i < pinned_pages_.size(); ++i) {
    if (pinned_pages_[i]->generation() == generation && !pinned_pages_[i]->empty())
      found.push_back(pinned_pages_[i]);
  }
  return found;
}

void FileImpl::DropPinnedPages() {
  uint64_t first = UINT64_MAX;
  for (const auto& [cut, pin] : pinned_) {
    if (const auto content = pin->content()) first = std::min(first, content->first_pages);
  }
  absl::MutexLock lock(&pinned_pages_mutex_);
  while (!pinned_pages_.empty() && pinned_pages_first_ < first) {
    pinned_pages_.pop_front();
    ++pinned_pages_first_;
  }
}

uint64_t FileImpl::PinnedBytes() {
  uint64_t held = 0;
  absl::flat_hash_map<const StageSegment*, uint64_t> segments;
  for (const auto& [cut, pin] : pinned_) {
    const auto content = pin->content();
    if (content == nullptr) continue;
    for (const auto& segment : content->segments) {
      segments.try_emplace(segment.get(), segment->file->Size().value_or(0));
    }
  }
  for (const auto& segment : stage_->segments()) segments.erase(segment.get());
  for (const auto& [segment, bytes] : segments) held += bytes;
  absl::MutexLock lock(&pinned_pages_mutex_);
  for (const auto& pages : pinned_pages_) held += pages->disk_bytes();
  return held;
}

void FileImpl::ExpireOverBudget() {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  while (!pinned_.empty() && PinnedBytes() > context_->options.snapshot_max_bytes) {
    DropPin(pinned_.begin()->first, &trash);
  }
}

void FileImpl::ExpireBefore(CutNumber cut) {
  Trash trash;
  absl::MutexLock lock(&mutex_);
  while (!pinned_.empty() && pinned_.begin()->first < cut) {
    DropPin(pinned_.begin()->first, &trash);
  }
}

}  // namespace h5mirror::store
