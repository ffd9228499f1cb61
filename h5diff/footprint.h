// The bytes of a file that all that is known of one object comes from.
#ifndef H5MIRROR_H5DIFF_FOOTPRINT_H_
#define H5MIRROR_H5DIFF_FOOTPRINT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/extent_set.h"
#include "h5diff/changed_ranges.h"
#include "h5diff/version_pages.h"
#include "hdf5/byte_source.h"

namespace h5mirror::tools {

// The bytes that HDF5 read on the way from the superblock to an object and of the object itself,
// and where the object's data lies. HDF5 makes the same of the same bytes: as long as none of these
// bytes differs in another version, the object is there and the same in it, or is not there in
// either.
//
// Not thread-safe.
class Footprint final : public hdf5::ReadObserver {
 public:
  void OnRead(hdf5::ReadKind kind, uint64_t offset, absl::Span<const char> bytes) override;
  void Add(Extent extent) { bytes_.Add(extent); }
  // It may be all over the file.
  void SetUnbounded() { unbounded_ = true; }

  // Whether a byte of it may lie in one of these ranges.
  bool Touches(const ExtentSet& changed) const;
  // Whether a byte of it differs: the parts in changed ranges are read in both versions, if they
  // are few; else true. Errors: of the source.
  absl::StatusOr<bool> Differs(VersionPages& pages) const;

 private:
  std::vector<Extent> PartsIn(const ExtentSet& changed) const;

  ExtentSet bytes_{kRangesMax};
  bool unbounded_ = false;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_FOOTPRINT_H_
