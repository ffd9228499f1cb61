// SWMR-write mode, seen to begin and end in the bytes that HDF5 writes.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_SWMR_WRITE_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_SWMR_WRITE_MODE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/superblock_image.h"

namespace h5mirror::vfd {

enum class SwmrFlag { kNotASuperblock, kClear, kSet };

// Looks at a write of `size` bytes at `offset`. A superblock lies at 0 or, behind a user block, at
// a power of two from 512 (HDF5 File Format Specification, section II.A).
inline SwmrFlag SwmrFlagOf(uint64_t offset, size_t size, const void* bytes) {
  const bool may_begin = offset == 0 || (offset >= 512 && (offset & (offset - 1)) == 0);
  const std::string_view written(static_cast<const char*>(bytes), size);
  if (!may_begin || size < kSuperblockFlagsEnd ||
      LooksLikeSuperblock(written) == HasSuperblock::kNo) {
    return SwmrFlag::kNotASuperblock;
  }
  return SwmrFlagAtFront(written) == HasSwmrFlag::kYes ? SwmrFlag::kSet : SwmrFlag::kClear;
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_SWMR_WRITE_MODE_H_
