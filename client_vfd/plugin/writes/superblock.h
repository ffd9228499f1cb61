// Just enough of HDF5's superblock to see SWMR-write mode begin and end in the bytes written
// (HDF5 File Format Specification, "Disk Format: Level 0A").
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_SUPERBLOCK_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_SUPERBLOCK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace h5mirror::vfd {

enum class SwmrFlag { kNotASuperblock, kClear, kSet };

// Looks at a write of `size` bytes at `offset`. A superblock lies at 0 or, behind a user block, at
// a power of two from 512.
inline SwmrFlag SwmrFlagOf(uint64_t offset, size_t size, const void* bytes) {
  constexpr size_t kSignatureBytes = 8;
  constexpr size_t kVersionAt = 8;
  constexpr size_t kFlagsAt = 11;
  constexpr unsigned char kSwmrWrite = 0x04;
  if (size <= kFlagsAt || (offset & (offset - 1)) != 0 || (offset != 0 && offset < 512)) {
    return SwmrFlag::kNotASuperblock;
  }
  const auto* byte = static_cast<const unsigned char*>(bytes);
  if (std::memcmp(byte, "\211HDF\r\n\032\n", kSignatureBytes) != 0)
    return SwmrFlag::kNotASuperblock;
  return byte[kVersionAt] == 3 && (byte[kFlagsAt] & kSwmrWrite) != 0 ? SwmrFlag::kSet
                                                                     : SwmrFlag::kClear;
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_SUPERBLOCK_H_
