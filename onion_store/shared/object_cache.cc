#include "onion_store/shared/object_cache.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

// If another thread's call takes longer, it may hang. This thread's own timeout does not cover that
// call.
constexpr absl::Duration kOthersMax = absl::Seconds(2);

}  // namespace

uint64_t ObjectCache::MaxFor(uint64_t memory_max_bytes) {
  return std::max<uint64_t>(memory_max_bytes / 16, 4 * kBlockBytes);
}

absl::Status ObjectCache::Read(const std::string& object, uint64_t object_bytes, uint64_t offset,
                               absl::Span<char> out) {
  if (store_ == nullptr) {
    return absl::FailedPreconditionError("this store has no archive: set the one that has it");
  }
  if (offset > object_bytes || out.size() > object_bytes - offset) {
    return absl::OutOfRangeError(StrCat("the object ends before offset ", offset + out.size()));
  }
  while (!out.empty()) {
    const uint64_t number = offset / kBlockBytes;
    const uint64_t skip = offset % kBlockBytes;
    H5M_ASSIGN_OR_RETURN(const Bytes block, BlockOf({object, number}, object_bytes));
    const size_t length = std::min<size_t>(out.size(), block->size() - skip);
    block->copy(out.data(), length, skip);
    offset += length;
    out.remove_prefix(length);
  }
  return absl::OkStatus();
}

absl::StatusOr<ObjectCache::Bytes> ObjectCache::BlockOf(const Key& key, uint64_t object_bytes) {
  if (Bytes found = FindOrClaim(key); found != nullptr) return found;
  const uint64_t begin = key.second * kBlockBytes;
  auto bytes = std::make_shared<std::string>(std::min(kBlockBytes, object_bytes - begin), '\0');
  const absl::Status got = store_->Get(key.first, begin, absl::MakeSpan(*bytes), kGetTimeout);
  const absl::MutexLock lock(&mutex_);
  wanted_.erase(key);
  H5M_RETURN_IF_ERROR(got);
  Keep(key, bytes);
  return Bytes(std::move(bytes));
}

ObjectCache::Bytes ObjectCache::FindOrClaim(const Key& key) {
  const absl::MutexLock lock(&mutex_);
  // A waiting thread may find that the call has failed, or hangs: then it makes its own call.
  const auto is_unclaimed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !wanted_.contains(key);
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_unclaimed), kOthersMax);
  const auto found = blocks_.find(key);
  if (found == blocks_.end()) {
    wanted_.insert(key);
    return nullptr;
  }
  uses_.splice(uses_.end(), uses_, found->second.use);
  return found->second.bytes;
}

void ObjectCache::Keep(const Key& key, const Bytes& bytes) {
  if (blocks_.contains(key)) return;  // Two threads have asked.
  uses_.push_back(key);
  blocks_[key] = {bytes, std::prev(uses_.end())};
  bytes_ += bytes->size();
  while (bytes_ > max_bytes_ && blocks_.size() > 1) Drop(blocks_.find(uses_.front()));
  charge_.Set(static_cast<int64_t>(bytes_));
}

void ObjectCache::Drop(std::map<Key, Block>::iterator block) {
  bytes_ -= block->second.bytes->size();
  uses_.erase(block->second.use);
  blocks_.erase(block);
}

bool ObjectCache::Forget(const std::string& object) {
  const absl::MutexLock lock(&mutex_);
  auto block = blocks_.lower_bound({object, 0});
  bool was_there = false;
  while (block != blocks_.end() && block->first.first == object) {
    const auto next = std::next(block);
    Drop(block);
    block = next;
    was_there = true;
  }
  charge_.Set(static_cast<int64_t>(bytes_));
  return was_there;
}

}  // namespace h5mirror::store
