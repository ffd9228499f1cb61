// The pages of a file that hold HDF5 metadata, as far as writers have told. A hint: readers get
// these pages in bulk. A wrong hint costs transfers or round trips, never wrong bytes.
#ifndef H5MIRROR_ONION_STORE_METADATA_MAP_H_
#define H5MIRROR_ONION_STORE_METADATA_MAP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "base/extent_set.h"

namespace h5mirror::store {

// Bounded: beyond kRunsMax runs of pages it closes the smallest gaps. Thread-safe.
class MetadataMap {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kRunsMax = 1 << 16;

  // Rounds `extents` to whole pages. Bytes beyond 2^62 are left out.
  void Add(absl::Span<const Extent> extents);
  void Clear();

  // The first run that ends after `offset`, clipped to start at or after it.
  std::optional<Extent> NextAfter(uint64_t offset) const;
  // The parts of `extent` that hold metadata, in order.
  std::vector<Extent> Within(Extent extent) const;
  uint64_t byte_count() const;

  // The map as bytes (docs/reference/format.md, "Metadata"), if it has changed since the last call
  // or Load().
  std::optional<std::string> TakeChanged();
  // Takes in bytes of TakeChanged(). Other bytes are ignored.
  void Load(std::string_view bytes);

 private:
  mutable absl::Mutex mutex_;
  ExtentSet pages_ ABSL_GUARDED_BY(mutex_){kRunsMax};
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_METADATA_MAP_H_
