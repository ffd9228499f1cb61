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
  kClosed,    // closed in order, by all signs
  kOpen,      // a writer's flag is set: a writer is at work, or has died
  kCutShort,  // the file is shorter than its superblock says: its writer has died
};

struct Superblock {
  uint8_t version = 0;
  // Superblock version 3 only: bit 0 open for writing, bit 2 SWMR.
  uint8_t consistency_flags = 0;
  // The end of the file, by its superblock; unset: unknown.
  std::optional<uint64_t> end_of_file;
};

// Parses `bytes`, which begin with the signature. Unset: no superblock of a known version.
std::optional<Superblock> ParseSuperblock(std::string_view bytes);

// Gives bytes of the file, all within its end.
using SuperblockReader = absl::FunctionRef<absl::StatusOr<std::string>(Extent extent)>;

// Where the superblock of a file of `size_bytes` is: 0, or the size of its user block, a power of
// two from 512 on. Unset: there is none, or it cannot be read.
std::optional<uint64_t> UserBlockBytes(uint64_t size_bytes, SuperblockReader read);

// Finds the superblock of a file of `size_bytes` and tells the state. An unreadable file is
// kNotHdf5.
Hdf5State LookAtHdf5(uint64_t size_bytes, SuperblockReader read);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SUPERBLOCK_H_
