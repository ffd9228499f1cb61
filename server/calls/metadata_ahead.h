// Chooses the blocks of metadata that are sent behind a range that a reader asked for.
#ifndef H5MIRROR_SERVER_CALLS_METADATA_AHEAD_H_
#define H5MIRROR_SERVER_CALLS_METADATA_AHEAD_H_

#include <cstdint>
#include <vector>

#include "base/extent.h"
#include "onion_store/metadata_map.h"

namespace h5mirror::server {

// Readers keep blocks of this size: rpc/block_cache.h.
inline constexpr uint64_t kMetadataBlockBytes = 64 << 10;
// The most bytes of metadata in one call.
inline constexpr uint64_t kMetadataBytesMax = 16 << 20;

struct MetadataBlocks {
  // Whole blocks, or pages, the file's last one shorter; in order, apart.
  std::vector<Extent> runs;
  uint64_t next = 0;  // the offset to look for more at; 0: there are no more
};

// The blocks of a file of `size_bytes` in which `map` has metadata, from `from` on, about
// `length_bytes`, without those that `read` touches.
MetadataBlocks FindMetadataBlocks(const store::MetadataMap& map, uint64_t size_bytes, uint64_t from,
                                  uint64_t length_bytes, Extent read);

// The same for pages, with `length_bytes` exact to a page. Each run includes the page behind it:
// HDF5 guesses the length of an object, and reads beyond its end.
MetadataBlocks FindMetadataPages(const store::MetadataMap& map, uint64_t size_bytes, uint64_t from,
                                 uint64_t length_bytes, Extent read);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_METADATA_AHEAD_H_
