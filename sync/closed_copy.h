// Closes the superblock of a version that was cut while a writer had the file open. HDF5 would
// refuse a copy with a writer's flags. It would also cut a copy off at the end of file in an SWMR
// writer's superblock, which is too small.
#ifndef H5MIRROR_SYNC_CLOSED_COPY_H_
#define H5MIRROR_SYNC_CLOSED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/extent.h"

namespace h5mirror::tools {

// Bytes and their place.
struct SuperblockPatch {
  uint64_t offset = 0;
  std::string bytes;

  Extent extent() const { return {offset, bytes.size()}; }
  // Overwrites the part of `data` that the patch covers. `data` lies at `data_offset` of the file.
  void Apply(uint64_t data_offset, std::string* data) const;
};

// `length` bytes at `offset`, which lie in the file.
using ReadRange = absl::FunctionRef<absl::StatusOr<std::string>(uint64_t offset, size_t length)>;

// Finds the patch for a file of `size_bytes`. Unset: the superblock is right as it is, or the file
// is not HDF5.
absl::StatusOr<std::optional<SuperblockPatch>> FindSuperblockPatch(uint64_t size_bytes,
                                                                   ReadRange read);

// The same of the file `fd` (`path` for messages).
absl::StatusOr<std::optional<SuperblockPatch>> FindSuperblockPatchOf(int fd, uint64_t size_bytes,
                                                                     const std::string& path);

// The same for the copy `fd`, and writes the patch into it.
absl::StatusOr<std::optional<SuperblockPatch>> CloseCopy(int fd, uint64_t size_bytes,
                                                         const std::string& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_CLOSED_COPY_H_
