// A set of bytes of a file, as disjoint, sorted, merged extents. The client's dirty map
// and the store's direct writes are such sets.
#ifndef H5MIRROR_BASE_EXTENT_SET_H_
#define H5MIRROR_BASE_EXTENT_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/extent.h"

namespace h5mirror {

// Not thread-safe. Every operation costs O(log n + extents touched).
class ExtentSet {
 public:
  // With `extents_max` > 0 the set never holds more extents: it closes the smallest gaps that it
  // finds. So it covers more bytes, but takes no more memory. That is right only for a dirty map:
  // there a byte too many is sent in vain, and does no harm.
  explicit ExtentSet(size_t extents_max = 0) : extents_max_(extents_max) {}

  void Add(Extent extent);
  void Remove(Extent extent);
  void AddAll(const ExtentSet& other);
  // Removes all bytes at or beyond `size_bytes`.
  void TruncateTo(uint64_t size_bytes);
  void Clear();
  // Removes the bound: from now on the set covers just the added bytes, in any amount of memory.
  void Unbound() { extents_max_ = 0; }

  bool empty() const { return map_.empty(); }
  size_t extent_count() const { return map_.size(); }
  uint64_t byte_count() const { return byte_count_; }
  // One past the last byte; 0 when empty.
  uint64_t end() const;

  bool Intersects(Extent extent) const;
  // The parts of `extent` that are in the set, in order.
  std::vector<Extent> Intersection(Extent extent) const;
  // The first extent that ends after `offset`, clipped to start at or after it.
  std::optional<Extent> NextAfter(uint64_t offset) const;
  // Removes and returns up to `bytes_max` bytes in at most `extents_max` extents, from the
  // first one at or after `from` (the caller wraps around).
  std::vector<Extent> Take(uint64_t from, uint64_t bytes_max, size_t extents_max);
  std::vector<Extent> ToVector() const;

 private:
  void Coarsen();

  absl::btree_map<uint64_t, uint64_t> map_;  // offset -> end
  uint64_t byte_count_ = 0;
  size_t extents_max_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_EXTENT_SET_H_
