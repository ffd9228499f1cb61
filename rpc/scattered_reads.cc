#include "rpc/scattered_reads.h"

#include <algorithm>

#include "rpc/block_cache.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
// Shares and bounds of what was read: see bench/README.md, "follow", for what they bring.
constexpr uint64_t kReadShare = 32;
constexpr uint64_t kReadMin = 4 * kBlock;
constexpr uint64_t kAheadOfRead = 8;

uint64_t BlocksOf(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock; }

}  // namespace

ScatteredReads::ScatteredReads(uint64_t size_bytes) : size_bytes_(size_bytes) {}

uint64_t ScatteredReads::Allowed(uint64_t room_bytes) const {
  if (read_bytes_ < std::max(kReadMin, size_bytes_ / kReadShare)) return 0;
  const uint64_t bound = kAheadOfRead * read_bytes_;
  return std::min(room_bytes, bound - std::min(bound, ahead_bytes_)) / kBlock;
}

BlockRange ScatteredReads::Around(BlockRange wanted, uint64_t room_bytes) {
  if (wanted.count() > kGroup / 2) return wanted;
  uint64_t allowed = Allowed(room_bytes);
  if (allowed == 0) return wanted;
  if (came_.empty()) came_.resize(BlocksOf(size_bytes_));
  const uint64_t first = wanted.begin / kGroup * kGroup;
  const uint64_t last =
      std::min<uint64_t>((wanted.end + kGroup - 1) / kGroup * kGroup, came_.size());
  BlockRange around = wanted;
  while (allowed > 0 && around.end < last && !came_[around.end]) ++around.end, --allowed;
  while (allowed > 0 && around.begin > first && !came_[around.begin - 1]) --around.begin, --allowed;
  return around;
}

void ScatteredReads::OnCame(BlockRange came, BlockRange wanted) {
  if (came_.empty()) return;
  ahead_bytes_ += (came.count() - wanted.count()) * kBlock;
  const auto at = [this](uint64_t block) {
    return came_.begin() + static_cast<int64_t>(std::min<uint64_t>(block, came_.size()));
  };
  std::fill(at(came.begin), at(came.end), true);
}

}  // namespace h5mirror::rpc
