#include "sync/compare.h"

#include <algorithm>
#include <optional>

#include "base/rounding.h"
#include "base/status_macros.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kSuspectsMax = 16384;
// Looked at between two calls of the sink: a writer's lease must be kept meanwhile, on slow disks
// too.
constexpr uint64_t kBatchBytes = 16 << 20;

}  // namespace

Comparison::Comparison(rpc::Client& client, std::string name, int64_t version, LocalBlocks& local,
                       Progress& progress)
    : client_(client),
      name_(std::move(name)),
      number_(version),
      local_(local),
      progress_(progress),
      suspects_(kSuspectsMax) {}

absl::Status Comparison::Coarse() {
  const DigestQuery query{.name = name_, .version = number_, .ranges = {}};
  H5M_ASSIGN_OR_RETURN(
      version_, StreamDigests(client_, query, &digest_bytes_,
                              [this](Extent block, const BlockDigest& digest) -> absl::Status {
                                H5M_ASSIGN_OR_RETURN(const BlockDigest ours,
                                                     local_.DigestOf(block));
                                if (ours != digest) suspects_.Add(block);
                                progress_.Update(block.end());
                                return absl::OkStatus();
                              }));
  return absl::OkStatus();
}

absl::Status Comparison::Fine(Sink sink) {
  std::vector<Extent> differing;
  for (uint64_t from = 0; const std::optional<Extent> next = suspects_.NextAfter(from);) {
    std::vector<Extent> batch;
    uint64_t bytes = 0;
    for (std::optional<Extent> suspect = next; suspect && bytes < kBatchBytes;
         suspect = suspects_.NextAfter(from)) {
      // Suspects begin and end at large blocks, so do their parts.
      batch.push_back({suspect->offset, std::min(suspect->length, kBatchBytes - bytes)});
      bytes += RoundUp(batch.back().length, kLargeBlockBytes);
      from = batch.back().end();
    }
    differing.clear();
    H5M_RETURN_IF_ERROR(CompareBatch(batch, differing));
    H5M_RETURN_IF_ERROR(sink(differing));
    progress_.Update(from);
  }
  return ScanTail(sink);
}

absl::Status Comparison::CompareBatch(absl::Span<const Extent> ranges,
                                      std::vector<Extent>& differing) {
  const DigestQuery query{.name = name_,
                          .version = version_.version(),
                          .block_size_bytes = kSmallBlockBytes,
                          .ranges = ranges};
  return StreamDigests(client_, query, &digest_bytes_,
                       [&](Extent block, const BlockDigest& digest) -> absl::Status {
                         H5M_ASSIGN_OR_RETURN(const BlockDigest ours, local_.DigestOf(block));
                         if (ours != digest) Differs(block.offset, differing);
                         return absl::OkStatus();
                       })
      .status();
}

// Compares the part of the local file beyond the version's end.
absl::Status Comparison::ScanTail(Sink sink) {
  std::vector<Extent> differing;
  const uint64_t end = local_.size_bytes();
  uint64_t scanned = 0;
  uint64_t offset = remote_size_bytes();
  while (offset < end) {
    const std::optional<uint64_t> data = local_.NextDataOffset(offset);
    if (!data) break;
    offset = std::max(offset, *data / kSmallBlockBytes * kSmallBlockBytes);
    const uint64_t next = RoundUp(offset + 1, kSmallBlockBytes);
    H5M_ASSIGN_OR_RETURN(const bool zeros, local_.IsZeros({offset, next - offset}));
    if (!zeros) Differs(offset / kSmallBlockBytes * kSmallBlockBytes, differing);
    scanned += next - offset;
    offset = next;
    if (scanned < kBatchBytes) continue;
    H5M_RETURN_IF_ERROR(sink(differing));
    differing.clear();
    scanned = 0;
    progress_.Update(offset);
  }
  return sink(differing);
}

void Comparison::Differs(uint64_t offset, std::vector<Extent>& differing) {
  // The block in which the version ends is looked at twice: before its end, and behind.
  if (last_differing_ == offset) return;
  last_differing_ = offset;
  const Extent block{offset, kSmallBlockBytes};
  differing_bytes_ += std::min(block.end(), size_max()) - offset;
  if (!differing.empty() && differing.back().end() == offset) {
    differing.back().length += block.length;
  } else {
    differing.push_back(block);
  }
}

absl::StatusOr<uint64_t> Comparison::FindFirst() {
  std::optional<uint64_t> first;
  H5M_RETURN_IF_ERROR(Fine([&](absl::Span<const Extent> differing) {
    if (!first && !differing.empty()) first = differing.front().offset;
    return absl::OkStatus();
  }));
  return first.value_or(std::min(local_.size_bytes(), remote_size_bytes()));
}

uint64_t Comparison::differing_bytes() const {
  const bool sizes_differ = local_.size_bytes() != remote_size_bytes();
  return std::max<uint64_t>(differing_bytes_, sizes_differ ? 1 : 0);
}

}  // namespace h5mirror::tools
