#include "ceph/sync_need.h"

#include <algorithm>

namespace h5mirror::ceph {

void SyncNeed::NoteWrite(uint64_t end_bytes) {
  absl::MutexLock lock(&mutex_);
  if (end_bytes > known_bytes_) has_changed_ = true;
}

void SyncNeed::NoteTruncate(uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  known_bytes_ = std::min(known_bytes_, size_bytes);
  ++truncate_count_;
  has_changed_ = true;
}

void SyncNeed::NoteChange() {
  absl::MutexLock lock(&mutex_);
  has_changed_ = true;
}

SyncNeed::Sync SyncNeed::BeginSync(bool wants_times) {
  absl::MutexLock lock(&mutex_);
  if (!wants_times && !has_changed_ && whole_syncs_ == 0) return {false, truncate_count_};
  has_changed_ = false;
  ++whole_syncs_;
  return {true, truncate_count_};
}

void SyncNeed::EndWhole(const Sync& sync, bool has_synced, uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  --whole_syncs_;
  if (!has_synced) has_changed_ = true;
  // The file was truncated since, so this size is void.
  if (sync.truncate_count != truncate_count_) return;
  if (!has_changed_) known_bytes_ = std::max(known_bytes_, size_bytes);
}

std::shared_ptr<SyncNeed> SyncNeeds::Of(uint64_t inode) {
  absl::MutexLock lock(&mutex_);
  std::weak_ptr<SyncNeed>& kept = needs_[inode];
  std::shared_ptr<SyncNeed> need = kept.lock();
  if (need != nullptr) return need;
  kept = need = std::make_shared<SyncNeed>();
  if (needs_.size() < sweep_at_) return need;
  std::erase_if(needs_, [](const auto& entry) { return entry.second.expired(); });
  sweep_at_ = 2 * needs_.size() + 64;
  return need;
}

}  // namespace h5mirror::ceph
