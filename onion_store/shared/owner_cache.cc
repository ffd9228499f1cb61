#include "onion_store/shared/owner_cache.h"

#include "base/strings.h"

namespace h5mirror::store {
namespace {

// Of the map, for each name.
constexpr uint64_t kEntryBytes = 80;

uint64_t CostOf(std::string_view name, std::string_view owner) {
  return kEntryBytes + name.size() + owner.size();
}

}  // namespace

uint64_t OwnerCache::Now() const {
  absl::MutexLock lock(&mutex_);
  return changes_;
}

std::optional<std::string> OwnerCache::Find(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = owners_.find(ToAbsl(name));
  if (found == owners_.end()) return std::nullopt;
  return found->second;
}

void OwnerCache::Put(std::string_view name, std::string_view owner, uint64_t moment) {
  absl::MutexLock lock(&mutex_);
  if (moment != changes_) return;
  const uint64_t cost = CostOf(name, owner);
  if (bytes_ + cost > bytes_max_) {
    owners_.clear();
    bytes_ = 0;
  }
  if (cost > bytes_max_) return;
  if (owners_.emplace(std::string(name), std::string(owner)).second) bytes_ += cost;
}

void OwnerCache::Forget(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  ++changes_;
  const auto found = owners_.find(ToAbsl(name));
  if (found == owners_.end()) return;
  bytes_ -= CostOf(found->first, found->second);
  owners_.erase(found);
}

}  // namespace h5mirror::store
