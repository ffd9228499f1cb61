// A half-open range of a file's bytes, the unit of all rooms.
#ifndef H5MIRROR_BASE_EXTENT_H_
#define H5MIRROR_BASE_EXTENT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace h5mirror {

// The bytes [offset, offset + length).
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;

  // One past the last byte; the caller has bounded offset and length.
  uint64_t end() const { return offset + length; }
  bool operator==(const Extent&) const = default;
};

// The caller has bounded them.
inline uint64_t TotalBytes(absl::Span<const Extent> extents) {
  uint64_t total = 0;
  for (const Extent& extent : extents) total += extent.length;
  return total;
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_EXTENT_H_
