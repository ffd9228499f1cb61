#include "rpc/block_cache.h"

#include <algorithm>

namespace h5mirror::rpc {
namespace {

// So many names are remembered; then all are forgotten, and the blocks under them age out.
constexpr size_t kOwnersMax = 10'000;

}  // namespace

uint64_t BlockCache::OwnerOf(const std::string& identity) {
  absl::MutexLock lock(&mutex_);
  if (owners_.size() >= kOwnersMax && !owners_.contains(identity)) owners_.clear();
  const auto [found, made] = owners_.try_emplace(identity, next_owner_);
  if (made) ++next_owner_;
  return found->second;
}

BlockCache::Block BlockCache::Find(uint64_t owner, uint64_t index) {
  absl::MutexLock lock(&mutex_);
  const auto found = index_.find({owner, index});
  if (found == index_.end()) return nullptr;
  Entries& entries = ListOf(found->second->kind);
  entries.splice(entries.begin(), entries, found->second);
  return found->second->block;
}

bool BlockCache::Holds(uint64_t owner, uint64_t index) {
  absl::MutexLock lock(&mutex_);
  return index_.contains({owner, index});
}

void BlockCache::Insert(uint64_t owner, uint64_t index, ReadKind kind, std::string bytes) {
  absl::MutexLock lock(&mutex_);
  const Key key{owner, index};
  if (index_.contains(key)) return;  // The same bytes: versions do not change.
  (kind == ReadKind::kRaw ? raw_bytes_ : metadata_bytes_) += bytes.size();
  Entries& entries = ListOf(kind);
  entries.push_front({key, std::make_shared<const std::string>(std::move(bytes)), kind});
  index_[key] = entries.begin();
  Evict();
}

void BlockCache::Evict() {
  const uint64_t room = capacity_bytes_ - reserved_bytes_;
  while (raw_bytes_ + metadata_bytes_ > room) {
    const bool raw = raw_bytes_ > room / 2 || metadata_.empty();
    Entries& entries = raw ? raw_ : metadata_;
    (raw ? raw_bytes_ : metadata_bytes_) -= entries.back().block->size();
    index_.erase(entries.back().key);
    entries.pop_back();
  }
}

bool BlockCache::Reserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes > capacity_bytes_ / 2 - reserved_bytes_) return false;
  reserved_bytes_ += bytes;
  Evict();
  return true;
}

void BlockCache::Unreserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
}

void BlockCache::Grow(uint64_t capacity_bytes) {
  absl::MutexLock lock(&mutex_);
  capacity_bytes_ = std::max(capacity_bytes_, capacity_bytes);
}

uint64_t BlockCache::capacity_bytes() {
  absl::MutexLock lock(&mutex_);
  return capacity_bytes_;
}

uint64_t BlockCache::used_bytes() {
  absl::MutexLock lock(&mutex_);
  return reserved_bytes_ + raw_bytes_ + metadata_bytes_;
}

}  // namespace h5mirror::rpc
