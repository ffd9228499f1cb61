#include "rpc/block_cache.h"

#include <algorithm>
#include <iterator>

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
  return found == index_.end() ? nullptr : Find(found->second);
}

BlockCache::Block BlockCache::Find(Place entry) {
  std::list<Entry>& entries = entry->list->entries;
  entries.splice(entries.begin(), entries, entry);
  return entry->block;
}

BlockCache::Block BlockCache::Use(uint64_t owner, uint64_t index, uint64_t bytes, uint64_t* ahead) {
  absl::MutexLock lock(&mutex_);
  *ahead = 0;
  const auto found = index_.find({owner, index});
  if (found == index_.end()) return nullptr;
  const Block block = Find(found->second);
  Entry& entry = *found->second;
  if (entry.list != &ahead_) return block;
  *ahead = std::min(entry.unread_bytes, bytes);
  entry.unread_bytes -= *ahead;
  if (entry.unread_bytes == 0) Demote(found->second);
  return block;
}

bool BlockCache::Holds(uint64_t owner, uint64_t index) {
  absl::MutexLock lock(&mutex_);
  return index_.contains({owner, index});
}

void BlockCache::Insert(uint64_t owner, uint64_t index, ReadKind kind, std::string bytes) {
  absl::MutexLock lock(&mutex_);
  Insert({owner, index}, kind == ReadKind::kRaw ? raw_ : metadata_, std::move(bytes), 0);
}

void BlockCache::BeginAhead(uint64_t owner) {
  absl::MutexLock lock(&mutex_);
  ++ahead_readers_[owner];
}

void BlockCache::InsertAhead(uint64_t owner, uint64_t index, std::string bytes,
                             uint64_t unread_bytes) {
  absl::MutexLock lock(&mutex_);
  Insert({owner, index}, unread_bytes > 0 ? ahead_ : raw_, std::move(bytes), unread_bytes);
}

void BlockCache::Insert(Key key, List& list, std::string bytes, uint64_t unread_bytes) {
  if (index_.contains(key)) return;  // The same bytes: versions do not change.
  list.bytes += bytes.size();
  list.entries.push_front(
      {key, std::make_shared<const std::string>(std::move(bytes)), &list, unread_bytes});
  index_[key] = list.entries.begin();
  Evict();
}

void BlockCache::EndAhead(uint64_t owner) {
  absl::MutexLock lock(&mutex_);
  if (--ahead_readers_[owner] > 0) return;
  ahead_readers_.erase(owner);
  for (Place next = ahead_.entries.begin(); next != ahead_.entries.end();) {
    const Place entry = next++;
    if (entry->key.first == owner) Demote(entry);
  }
}

void BlockCache::GiveUpAhead(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const uint64_t left = ahead_.bytes - std::min(ahead_.bytes, bytes);
  while (ahead_.bytes > left) Demote(std::prev(ahead_.entries.end()));
}

void BlockCache::Demote(Place entry) {
  const uint64_t bytes = entry->block->size();
  ahead_.bytes -= bytes;
  raw_.bytes += bytes;
  entry->list = &raw_;
  raw_.entries.splice(raw_.entries.end(), ahead_.entries, entry);
}

uint64_t BlockCache::room_ahead_bytes() {
  absl::MutexLock lock(&mutex_);
  const uint64_t most = capacity_bytes_ / 4 * 3;
  return most - std::min(most, reserved_bytes_ + metadata_.bytes + ahead_.bytes);
}

BlockCache::List& BlockCache::NextToLose(uint64_t room) {
  const bool raw = raw_.bytes + ahead_.bytes > room / 2 || metadata_.entries.empty();
  if (!raw) return metadata_;
  return raw_.entries.empty() ? ahead_ : raw_;
}

void BlockCache::Evict() {
  const uint64_t room = capacity_bytes_ - reserved_bytes_;
  while (UsedBytes() > room) {
    List& list = NextToLose(room);
    list.bytes -= list.entries.back().block->size();
    index_.erase(list.entries.back().key);
    list.entries.pop_back();
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
  return reserved_bytes_ + UsedBytes();
}

}  // namespace h5mirror::rpc
