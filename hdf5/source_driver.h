// A read-only file driver inside the process: HDF5 over anything that hands out bytes.
#ifndef H5MIRROR_HDF5_SOURCE_DRIVER_H_
#define H5MIRROR_HDF5_SOURCE_DRIVER_H_

#include "absl/status/statusor.h"
#include "hdf5/byte_source.h"
#include "hdf5/handle.h"

namespace h5mirror::hdf5 {

// An HDF5 file over a source; closed with it. The flags of a writer in its superblock read as
// cleared. HDF5 reads exactly what it needs: no accumulator, no sieve buffer, no chunk cache.
// Not thread-safe.
class SourceFile {
 public:
  // `source` must outlive it, and `observer` (may be null) too.
  // Errors: those of the source; kInternal HDF5 does not take it for one of its files.
  static absl::StatusOr<SourceFile> Open(ByteSource& source, ReadObserver* observer);

  hid_t id() const { return file_.get(); }
  // Of the bytes that addresses in the file count from: the size of a user block, or 0.
  uint64_t base_offset() const { return base_offset_; }

 private:
  SourceFile(Handle file, uint64_t base_offset)
      : file_(std::move(file)), base_offset_(base_offset) {}

  Handle file_;
  uint64_t base_offset_;
};

}  // namespace h5mirror::hdf5

#endif  // H5MIRROR_HDF5_SOURCE_DRIVER_H_
