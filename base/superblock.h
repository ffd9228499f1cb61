// The state of an HDF5 file by its superblock, without the HDF5 library.
//
// Source: HDF5 File Format Specification, version 3.0, section II.A, "Disk Format: Level 0A -
// Format Signature and Superblock".
#ifndef H5MIRROR_BASE_SUPERBLOCK_H_
#define H5MIRROR_BASE_SUPERBLOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/extent.h"

namespace h5mirror {

enum class Hdf5State {
  kNotHdf5,   // no signature at 0, 512, 1024, ...
  kClosed,    // closed in order, as far as the superblock tells
  kOpen,      // a writer's flag is set: a writer is at work, or has died
  kCutShort,  // the file is shorter than its superblock says: its writer has died
};

struct Superblock {
  uint8_t version = 0;
  // Superblock version 3 only: bit 0 open for writing, bit 2 SWMR.
  uint8_t consistency_flags = 0;
  // The end of the file, as its superblock says; unset: unknown.
  std::optional<uint64_t> end_of_file;
};

// Parses `bytes`, which begin with the signature. Unset: no superblock of a known version.
std::optional<Superblock> ParseSuperblock(std::string_view bytes);

// Reads `extent`, which ends within the file.
using SuperblockReader = absl::FunctionRef<absl::StatusOr<std::string>(Extent extent)>;

// The offset of the superblock in a file of `size_bytes`: 0, or the size of its user block, a power
// of two from 512 on. Unset: there is no superblock, or it cannot be read.
std::optional<uint64_t> UserBlockBytes(uint64_t size_bytes, SuperblockReader read);

// Finds the superblock of a file of `size_bytes`, and returns the file's state. An unreadable file
// is kNotHdf5.
Hdf5State LookAtHdf5(uint64_t size_bytes, SuperblockReader read);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SUPERBLOCK_H_
