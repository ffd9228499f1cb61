#include "server/metadata_ahead.h"

#include <algorithm>
#include <optional>

namespace h5mirror::server {
namespace {

uint64_t BlockDown(uint64_t offset) { return offset / kMetadataBlockBytes * kMetadataBlockBytes; }

}  // namespace

MetadataBlocks FindMetadataBlocks(const store::MetadataMap& map, uint64_t size_bytes, uint64_t from,
                                  uint64_t length_bytes, Extent read) {
  MetadataBlocks found;
  length_bytes = std::min(length_bytes, kMetadataBytesMax);
  uint64_t total = 0;
  uint64_t at = BlockDown(from);
  while (const std::optional<Extent> pages = map.NextAfter(at)) {
    const uint64_t block = BlockDown(pages->offset);
    if (block >= size_bytes) break;
    if (total >= length_bytes) {
      found.next = block;
      break;
    }
    at = block + kMetadataBlockBytes;
    if (read.length > 0 && block < read.end() && at > read.offset) {
      at = std::max(at, BlockDown(read.end()));
      continue;
    }
    const uint64_t length = std::min(at, size_bytes) - block;
    if (!found.runs.empty() && found.runs.back().end() == block) {
      found.runs.back().length += length;
    } else {
      found.runs.push_back({block, length});
    }
    total += length;
  }
  return found;
}

}  // namespace h5mirror::server
