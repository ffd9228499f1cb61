// Whether HDF5 can open all that is in a file.
#ifndef H5MIRROR_HDF5_OPEN_CHECK_H_
#define H5MIRROR_HDF5_OPEN_CHECK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "hdf5/byte_source.h"

namespace h5mirror::hdf5 {

struct OpenedObjects {
  uint64_t objects = 0;
  uint64_t attributes = 0;
};

// Opens every object that can be reached by hard links, reads its attributes and, of a dataset, its
// type, space, creation properties and the index of its chunks; no raw data, and no variable-length
// values. Not thread-safe.
//
// Errors: those of the source; kInternal names the object and has HDF5's error.
absl::StatusOr<OpenedObjects> OpenAllObjects(ByteSource& source);

}  // namespace h5mirror::hdf5

#endif  // H5MIRROR_HDF5_OPEN_CHECK_H_
