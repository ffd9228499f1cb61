#include "rpc/scattered_reads.h"

#include <algorithm>

#include "rpc/block_cache.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
constexpr uint64_t kReadShare = 32;
constexpr uint64_t kReadMin = 4 * kBlock;
constexpr uint64_t kAheadOfRead = 8;
constexpr uint64_t kBlocksMax = 1 << 20;
constexpr uint64_t kUnit = kBlock / 256;
constexpr uint8_t kWhole = 255;
// What is read of a block that has nothing more to bring: 7/8.
constexpr uint8_t kMostOfIt = 224;

uint64_t BlocksOf(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock; }

}  // namespace

bool ScatteredReads::Count() {
  if (read_.empty() && BlocksOf(size_bytes_) <= kBlocksMax) read_.resize(BlocksOf(size_bytes_));
  return !read_.empty();
}

uint64_t ScatteredReads::Allowed(uint64_t room_bytes) const {
  if (read_.empty() || read_bytes_ < std::max(kReadMin, size_bytes_ / kReadShare)) return 0;
  const uint64_t bound = kAheadOfRead * read_bytes_;
  const uint64_t room = room_bytes - std::min(room_bytes, kept_free_bytes_);
  return std::min(room, bound - std::min(bound, ahead_bytes_)) / kBlock;
}

BlockRange ScatteredReads::Around(BlockRange wanted, uint64_t room_bytes) const {
  if (wanted.count() > kGroup / 2 || HaveCome(wanted)) return wanted;
  uint64_t allowed = Allowed(room_bytes);
  if (allowed == 0) return wanted;
  const auto is_new = [this](uint64_t block) { return read_[block] < kMostOfIt; };
  const uint64_t first = wanted.begin / kGroup * kGroup;
  const uint64_t group_end = (wanted.end + kGroup - 1) / kGroup * kGroup;
  const uint64_t last = std::min<uint64_t>(group_end, read_.size());
  BlockRange around = wanted;
  for (; allowed > 0 && around.end < last && is_new(around.end); --allowed) ++around.end;
  for (; allowed > 0 && around.begin > first && is_new(around.begin - 1); --allowed) --around.begin;
  return around;
}

bool ScatteredReads::HaveCome(BlockRange blocks) const {
  if (blocks.end > read_.size()) return false;
  return std::all_of(read_.begin() + static_cast<int64_t>(blocks.begin),
                     read_.begin() + static_cast<int64_t>(blocks.end),
                     [](uint8_t read) { return read == kWhole; });
}

void ScatteredReads::Mark(uint64_t block, uint64_t units) {
  if (block >= read_.size()) return;
  const uint8_t before = read_[block];
  read_[block] = static_cast<uint8_t>(std::min<uint64_t>(kWhole, before + units));
  if (before != kWhole && read_[block] == kWhole) ++whole_;
}

void ScatteredReads::OnAlone(uint64_t offset, uint64_t length) {
  if (!Count()) return;
  read_bytes_ += length;
  const uint64_t end = std::min(offset + length, size_bytes_);
  while (offset < end) {
    const uint64_t block = offset / kBlock;
    const uint64_t part = std::min(end, (block + 1) * kBlock) - offset;
    Mark(block, (part + kUnit - 1) / kUnit);
    offset += part;
  }
}

void ScatteredReads::OnCame(BlockRange came, BlockRange wanted, uint64_t bytes) {
  if (!Count()) return;
  read_bytes_ += bytes;
  ahead_bytes_ += (came.count() - wanted.count()) * kBlock;
  for (uint64_t block = came.begin; block < came.end; ++block) Mark(block, kWhole);
}

uint64_t ScatteredReads::OnRepeat() {
  if (whole_ >= read_.size() - read_.size() / 8) {
    std::fill(read_.begin(), read_.end(), 0);
    whole_ = ahead_bytes_ = kept_free_bytes_ = 0;
    return 0;
  }
  kept_free_bytes_ += kGroup * kBlock;
  return kGroup * kBlock;
}

uint64_t ScatteredReads::UnreadBytes(uint64_t block) const {
  const uint64_t read = block < read_.size() ? read_[block] : 0;
  return read >= kMostOfIt ? 0 : (kMostOfIt - read) * kUnit;
}

}  // namespace h5mirror::rpc
