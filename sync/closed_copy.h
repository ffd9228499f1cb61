// The superblock of a version that was cut while a writer had the file open, as it is handed out:
// HDF5 would refuse a copy with a writer's flags, and cut it off where an SWMR writer's superblock
// says that it ends.
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
  // Over those of the bytes at `data_offset` that it is for.
  void Apply(uint64_t data_offset, std::string* data) const;
};

// `length` bytes at `offset`, which lie in the file.
using ReadRange = absl::FunctionRef<absl::StatusOr<std::string>(uint64_t offset, size_t length)>;

// Of a file of `size_bytes`. Unset: it is right as it is, or not HDF5.
absl::StatusOr<std::optional<SuperblockPatch>> FindSuperblockPatch(uint64_t size_bytes,
                                                                   ReadRange read);

// The same of the file `fd` (`path` for messages).
absl::StatusOr<std::optional<SuperblockPatch>> FindSuperblockPatchOf(int fd, uint64_t size_bytes,
                                                                     const std::string& path);

// The same of the copy `fd`, which is patched.
absl::StatusOr<std::optional<SuperblockPatch>> CloseCopy(int fd, uint64_t size_bytes,
                                                         const std::string& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_CLOSED_COPY_H_
