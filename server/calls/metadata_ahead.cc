#include "server/calls/metadata_ahead.h"

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

MetadataBlocks FindMetadataPages(const store::MetadataMap& map, uint64_t size_bytes, uint64_t from,
                                 uint64_t length_bytes, Extent read) {
  constexpr uint64_t kPage = store::MetadataMap::kPageBytes;
  MetadataBlocks found;
  uint64_t room = std::min(length_bytes, kMetadataBytesMax) / kPage * kPage;
  for (uint64_t at = from / kPage * kPage;;) {
    const std::optional<Extent> run = map.NextAfter(at);
    if (!run.has_value() || run->offset >= size_bytes) return found;
    at = run->offset;
    uint64_t end = std::min(run->end() + kPage, size_bytes);
    if (at >= read.offset && at < read.end()) {
      at = read.end();
      continue;
    }
    if (at < read.offset && read.length > 0) end = std::min(end, read.offset);
    if (room == 0) {
      found.next = at;
      return found;
    }
    const uint64_t length = std::min(end - at, room);
    found.runs.push_back({at, length});
    room -= std::min(room, (length + kPage - 1) / kPage * kPage);
    at += length;
  }
}

}  // namespace h5mirror::server
