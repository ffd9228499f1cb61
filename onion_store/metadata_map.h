// Which pages of a file hold metadata, as far as anybody has said. A hint: by it readers get
// metadata in bulk; whatever it says, they get the right bytes.
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

// Bounded: with more runs of pages than it can hold it closes the smallest gaps. Thread-safe.
class MetadataMap {
 public:
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kRunsMax = 1 << 16;

  // `extents` are rounded to whole pages; what lies beyond 2^62 is left out.
  void Add(absl::Span<const Extent> extents);
  void Clear();

  // The first run that ends after `offset`, clipped to start at or after it.
  std::optional<Extent> NextAfter(uint64_t offset) const;
  // The parts of `extent` that hold metadata, in order.
  std::vector<Extent> Within(Extent extent) const;
  uint64_t byte_count() const;

  // Its bytes on the disk (docs/reference/format.md, "Metadata"), if it has changed since the last
  // call or Load().
  std::optional<std::string> TakeChanged();
  // What TakeChanged() gave; anything else is ignored.
  void Load(std::string_view bytes);

 private:
  mutable absl::Mutex mutex_;
  ExtentSet pages_ ABSL_GUARDED_BY(mutex_){kRunsMax};
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_METADATA_MAP_H_
