#include "onion_store/shared/open_indexes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace h5mirror::store {
namespace {

constexpr uint64_t kOpenMin = 4;

}  // namespace

size_t OpenIndexes::MaxFor(uint64_t memory_max_bytes) {
  return std::max(kOpenMin, memory_max_bytes / 8 / kIndexBytes);
}

void OpenIndexes::Opened(ClosableIndex& index) {
  Use(index);
  absl::MutexLock lock(&mutex_);
  open_.insert(&index);
  while (open_.size() > open_max_ && CloseOne(index)) continue;
  Recount();
}

bool OpenIndexes::CloseOne(const ClosableIndex& opened) {
  std::vector<std::pair<uint64_t, ClosableIndex*>> others;
  others.reserve(open_.size());
  for (ClosableIndex* index : open_) {
    if (index != &opened) others.emplace_back(index->last_use_.load(), index);
  }
  std::sort(others.begin(), others.end());
  for (const auto& [last_use, index] : others) {
    if (!index->TryClose()) continue;
    open_.erase(index);
    return true;
  }
  return false;
}

void OpenIndexes::Closed(ClosableIndex& index) {
  absl::MutexLock lock(&mutex_);
  open_.erase(&index);
  Recount();
}

size_t OpenIndexes::open_count() {
  absl::MutexLock lock(&mutex_);
  return open_.size();
}

void OpenIndexes::Recount() { charge_.Set(static_cast<int64_t>(open_.size() * kIndexBytes)); }

}  // namespace h5mirror::store
