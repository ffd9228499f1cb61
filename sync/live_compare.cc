#include "sync/live_compare.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "sync/digest_stream.h"

namespace h5mirror::tools {
namespace {

// With the first one, of large blocks. Each makes a version.
constexpr int kRoundsMax = 5;
// Small blocks that are looked at again: of 1 GiB, in 12 MiB of memory.
constexpr size_t kPendingMax = 262'144;
// The wire takes 65536.
constexpr size_t kRangesMax = 32'768;

}  // namespace

absl::Status LiveComparison::Run() {
  rounds_ = 1;
  H5M_RETURN_IF_ERROR(CompareLarge());
  while ((!pending_.empty() || size_suspected_) && fresh_ && rounds_ < kRoundsMax) {
    ++rounds_;
    H5M_RETURN_IF_ERROR(CompareSmall());
  }
  // Without another cut it can still be said which small blocks are as the newest one has them.
  if (rounds_ == 1 && !pending_.empty()) H5M_RETURN_IF_ERROR(ComparePending());
  for (const Seen& block : pending_) busy_.Add({block.offset, block.length});
  pending_.clear();
  for (const Extent extent : differing_.ToVector()) busy_.Remove(extent);
  return absl::OkStatus();
}

// The cut's size is one that the file had between the two times. That it became shorter and longer,
// or the other way round, within one round is rare enough to believe it once.
void LiveComparison::CompareSizes(uint64_t before_bytes, uint64_t now_bytes) {
  const auto version_bytes = static_cast<uint64_t>(version_.size_bytes());
  const auto [shorter, longer] = std::minmax(before_bytes, now_bytes);
  Extent tail{0, 0};  // that one side has for sure and the other has not
  if (version_bytes < shorter) tail = {version_bytes, shorter - version_bytes};
  if (version_bytes > longer) tail = {longer, version_bytes - longer};
  const bool differs = fresh_ && tail.length > 0;
  if (differs && size_suspected_) {
    differing_.Add(tail);
    size_differs_ = true;
  } else if (tail.length > 0) {
    busy_.Add(tail);
  }
  size_suspected_ = differs && !size_differs_;
}

absl::StatusOr<std::vector<LiveComparison::Seen>> LiveComparison::LookAtAll() {
  H5M_ASSIGN_OR_RETURN(LocalBlocks local, open_blocks_());
  size_before_bytes_ = local.size_bytes();
  std::vector<Seen> seen;
  for (uint64_t offset = 0; offset < local.size_bytes(); offset += kLargeBlockBytes) {
    const Extent block{offset, std::min(kLargeBlockBytes, local.size_bytes() - offset)};
    H5M_ASSIGN_OR_RETURN(const BlockDigest digest, local.DigestOf(block));
    seen.push_back({block.offset, block.length, digest});
  }
  return seen;
}

absl::Status LiveComparison::CompareLarge() {
  H5M_ASSIGN_OR_RETURN(const std::vector<Seen> before, LookAtAll());
  H5M_ASSIGN_OR_RETURN(const Cut cut, await_cut_(absl::Now()));
  fresh_ = cut.fresh;
  H5M_ASSIGN_OR_RETURN(LocalBlocks now, open_blocks_());
  const DigestQuery query{.name = name_, .version = cut.version.version(), .ranges = {}};
  size_t next = 0;
  H5M_ASSIGN_OR_RETURN(
      version_,
      StreamDigests(client_, query, &digest_bytes_,
                    [&](Extent block, const BlockDigest& theirs) -> absl::Status {
                      const Seen* was = next < before.size() ? &before[next++] : nullptr;
                      if (was != nullptr && was->length == block.length && was->digest == theirs) {
                        return absl::OkStatus();
                      }
                      H5M_ASSIGN_OR_RETURN(const BlockDigest is, now.DigestOf(block));
                      if (is != theirs) AddPending(block);
                      return absl::OkStatus();
                    }));
  CompareSizes(size_before_bytes_, now.size_bytes());
  return absl::OkStatus();
}

void LiveComparison::AddPending(Extent block) {
  for (uint64_t offset = block.offset; offset < block.end(); offset += kSmallBlockBytes) {
    const uint64_t length = std::min(kSmallBlockBytes, block.end() - offset);
    if (pending_.size() < kPendingMax) {
      pending_.push_back({.offset = offset, .length = length});
    } else {
      busy_.Add({offset, length});
    }
  }
}

absl::Status LiveComparison::LookAtPending() {
  H5M_ASSIGN_OR_RETURN(LocalBlocks local, open_blocks_());
  size_before_bytes_ = local.size_bytes();
  for (Seen& block : pending_) {
    H5M_ASSIGN_OR_RETURN(block.digest, local.DigestOf({block.offset, block.length}));
  }
  return absl::OkStatus();
}

absl::Status LiveComparison::CompareSmall() {
  H5M_RETURN_IF_ERROR(LookAtPending());
  H5M_ASSIGN_OR_RETURN(const Cut cut, await_cut_(absl::Now()));
  fresh_ = cut.fresh;
  version_ = cut.version;
  return ComparePending();
}

absl::Status LiveComparison::ComparePending() {
  const auto size = static_cast<uint64_t>(version_.size_bytes());
  H5M_ASSIGN_OR_RETURN(LocalBlocks now, open_blocks_());
  if (rounds_ > 1) CompareSizes(size_before_bytes_, now.size_bytes());
  std::vector<Seen> left;
  // Blocks beyond the version are left to CompareSizes().
  const auto end = std::partition_point(pending_.begin(), pending_.end(),
                                        [size](const Seen& block) { return block.offset < size; });
  for (auto next = pending_.begin(); next != end;) {
    std::vector<Extent> ranges;
    auto block = next;
    for (; block != end; ++block) {
      const uint64_t length = std::min(kSmallBlockBytes, size - block->offset);
      if (!ranges.empty() && ranges.back().end() == block->offset) {
        ranges.back().length += length;
      } else if (ranges.size() == kRangesMax) {
        break;
      } else {
        ranges.push_back({block->offset, length});
      }
    }
    const DigestQuery query{.name = name_,
                            .version = version_.version(),
                            .block_size_bytes = kSmallBlockBytes,
                            .ranges = ranges};
    const auto compare = [&](Extent extent, const BlockDigest& theirs) -> absl::Status {
      Seen& was = *next++;
      const bool same_length = was.length == extent.length;
      if (same_length && was.digest == theirs) return absl::OkStatus();
      H5M_ASSIGN_OR_RETURN(const BlockDigest is, now.DigestOf(extent));
      if (is == theirs) return absl::OkStatus();
      const bool differs = fresh_ && same_length && is == was.digest;
      if (differs && was.suspected) {
        differing_.Add(extent);
      } else {
        left.push_back({extent.offset, extent.length, {}, differs});
      }
      return absl::OkStatus();
    };
    H5M_RETURN_IF_ERROR(StreamDigests(client_, query, &digest_bytes_, compare).status());
    next = block;
  }
  pending_ = std::move(left);
  return absl::OkStatus();
}

}  // namespace h5mirror::tools
