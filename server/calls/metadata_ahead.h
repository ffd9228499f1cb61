// Which blocks of metadata are sent behind a range that a reader asked for.
#ifndef H5MIRROR_SERVER_CALLS_METADATA_AHEAD_H_
#define H5MIRROR_SERVER_CALLS_METADATA_AHEAD_H_

#include <cstdint>
#include <vector>

#include "base/extent.h"
#include "onion_store/metadata_map.h"

namespace h5mirror::server {

// Readers keep blocks of this size: rpc/block_cache.h.
inline constexpr uint64_t kMetadataBlockBytes = 64 << 10;
// Of one call.
inline constexpr uint64_t kMetadataBytesMax = 16 << 20;

struct MetadataBlocks {
  // Whole blocks, or pages, the file's last one shorter; in order, apart.
  std::vector<Extent> runs;
  uint64_t next = 0;  // where to look for more; 0: there are none
};

// The blocks of a file of `size_bytes` that `map` has metadata in, from `from` on, about
// `length_bytes`, but for those that `read` touches.
MetadataBlocks FindMetadataBlocks(const store::MetadataMap& map, uint64_t size_bytes, uint64_t from,
                                  uint64_t length_bytes, Extent read);

// The same of pages, and `length_bytes` to the page. With each run comes the page behind it: HDF5
// reads the beginning of an object by a guess at its length, and so over its end.
MetadataBlocks FindMetadataPages(const store::MetadataMap& map, uint64_t size_bytes, uint64_t from,
                                 uint64_t length_bytes, Extent read);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_METADATA_AHEAD_H_
