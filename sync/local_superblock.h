// The facts of a local HDF5 file in its first bytes, without the HDF5 library.
#ifndef H5MIRROR_SYNC_LOCAL_SUPERBLOCK_H_
#define H5MIRROR_SYNC_LOCAL_SUPERBLOCK_H_

#include <cstdint>

#include "base/superblock.h"

namespace h5mirror::tools {

// Looks for the superblock of the file `fd`, which has `size_bytes`.
Hdf5State LookAtHdf5(int fd, uint64_t size_bytes);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_LOCAL_SUPERBLOCK_H_
