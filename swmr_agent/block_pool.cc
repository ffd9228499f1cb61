#include "swmr_agent/block_pool.h"

#include <algorithm>
#include <utility>

namespace h5mirror::agent {

uint32_t BlockPool::AllPages(const Block& block) {
  const uint64_t pages = (block.length_bytes_ + kPageBytes - 1) / kPageBytes;
  return static_cast<uint32_t>((uint64_t{1} << pages) - 1);
}

void BlockPool::Unlist(Block& block) {
  if (!block.is_listed_) return;
  (block.is_metadata_ ? metadata_bytes_ : raw_bytes_) -= block.length_bytes_;
  block.is_listed_ = false;
  ListOf(block).erase(block.place_);  // Maybe the last one to hold it, but for the caller.
}

void BlockPool::List(const BlockPtr& block) {
  Unlist(*block);
  Blocks& list = ListOf(*block);
  list.push_front(block);
  block->place_ = list.begin();
  block->is_listed_ = true;
  (block->is_metadata_ ? metadata_bytes_ : raw_bytes_) += block->length_bytes_;
  MakeRoom();
}

void BlockPool::MakeRoom() {
  const uint64_t capacity_bytes = capacity_bytes_ - reserved_bytes_;
  while (raw_bytes_ + metadata_bytes_ > capacity_bytes) {
    const bool raw_first =
        metadata_.empty() || (!raw_.empty() && metadata_bytes_ <= capacity_bytes / 2);
    Forget(raw_first ? raw_ : metadata_);
  }
}

void BlockPool::Forget(Blocks& blocks) {
  const BlockPtr oldest = blocks.back();
  Unlist(*oldest);
  oldest->bytes_.reset();
  oldest->known_ = 0;
}

BytesPtr BlockPool::Get(const BlockPtr& block) {
  absl::MutexLock lock(&mutex_);
  if (block->bytes_ == nullptr || block->known_ != AllPages(*block)) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  Blocks& list = ListOf(*block);
  list.splice(list.begin(), list, block->place_);
  return block->bytes_;
}

BytesPtr BlockPool::Fill(const BlockPtr& block, std::string bytes, Kind kind) {
  auto filled = std::make_shared<const std::string>(std::move(bytes));
  absl::MutexLock lock(&mutex_);
  Unlist(*block);
  block->is_metadata_ = block->is_metadata_ || kind == Kind::kMetadata;
  block->bytes_ = filled;
  block->known_ = AllPages(*block);
  List(block);
  return filled;
}

void BlockPool::Patch(const BlockPtr& block, uint64_t offset, std::string_view pages, Kind kind) {
  absl::MutexLock lock(&mutex_);
  std::string bytes =
      block->bytes_ != nullptr ? *block->bytes_ : std::string(block->length_bytes_, '\0');
  pages = pages.substr(0, block->length_bytes_ - std::min(offset, block->length_bytes_));
  bytes.replace(offset, pages.size(), pages);
  Unlist(*block);
  block->is_metadata_ = block->is_metadata_ || kind == Kind::kMetadata;
  block->bytes_ = std::make_shared<const std::string>(std::move(bytes));
  for (uint64_t at = offset; at < offset + pages.size(); at += kPageBytes) {
    block->known_ |= uint32_t{1} << (at / kPageBytes);
  }
  List(block);
}

BlockPtr BlockPool::CopyWithout(const BlockPtr& block, uint64_t length_bytes, uint64_t begin,
                                uint64_t end) {
  absl::MutexLock lock(&mutex_);
  uint32_t known = block->known_;
  const uint64_t common = std::min(length_bytes, block->length_bytes_);
  for (uint64_t page = 0; page * kPageBytes < kBlockBytes; ++page) {
    const uint64_t page_begin = page * kPageBytes, page_end = page_begin + kPageBytes;
    const bool changed = page_begin < end && begin < page_end;
    // The page in which one of the two ends holds other bytes beyond it, unless both end there.
    const bool cut_off = page_end > common && length_bytes != block->length_bytes_;
    if (changed || cut_off) known &= ~(uint32_t{1} << page);
  }
  if (known == 0 || block->bytes_ == nullptr) return nullptr;
  std::string bytes = *block->bytes_;
  bytes.resize(length_bytes);
  auto copy = std::make_shared<Block>(length_bytes);
  copy->is_metadata_ = block->is_metadata_;
  copy->bytes_ = std::make_shared<const std::string>(std::move(bytes));
  copy->known_ = known;
  List(copy);
  return copy;
}

BlockPool::Known BlockPool::Peek(const BlockPtr& block) {
  absl::MutexLock lock(&mutex_);
  return {block->bytes_, block->known_};
}

bool BlockPool::TryReserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes > capacity_bytes_ / 2 - reserved_bytes_) {
    lacks_memory_ = true;
    return false;
  }
  reserved_bytes_ += bytes;
  MakeRoom();
  return true;
}

bool BlockPool::TakeLackOfMemory() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(lacks_memory_, false);
}

void BlockPool::NoteLackOfMemory() {
  absl::MutexLock lock(&mutex_);
  lacks_memory_ = true;
}

void BlockPool::Unreserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
}

bool BlockPool::IsEmpty(const BlockPtr& block) {
  absl::MutexLock lock(&mutex_);
  return block->known_ == 0 && !block->is_fetched_now_;
}

BlockPool::Claim BlockPool::TryClaim(const BlockPtr& block) {
  absl::MutexLock lock(&mutex_);
  if (block->bytes_ != nullptr && block->known_ == AllPages(*block)) return Claim::kKnown;
  if (block->is_fetched_now_) return Claim::kBusy;
  block->is_fetched_now_ = true;
  return Claim::kClaimed;
}

void BlockPool::Release(const BlockPtr& block) {
  absl::MutexLock lock(&mutex_);
  block->is_fetched_now_ = false;
  block->released_.SignalAll();
}

bool BlockPool::AwaitRelease(const BlockPtr& block, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  bool is_late = false;
  while (block->is_fetched_now_ && !is_late) {
    is_late = block->released_.WaitWithDeadline(&mutex_, deadline);
  }
  return !block->is_fetched_now_;
}

BlockPool::Count BlockPool::count() {
  absl::MutexLock lock(&mutex_);
  return {.used_bytes = raw_bytes_ + metadata_bytes_,
          .reserved_bytes = reserved_bytes_,
          .hits = hits_,
          .misses = misses_};
}

}  // namespace h5mirror::agent
