// The class of a write of HDF5: metadata or raw data.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_WRITE_CLASS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_WRITE_CLASS_H_

#include <cstddef>
#include <string_view>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

// Collections of the global heap come as raw data (HDF5 File Format Specification, "Level 1E").
// Attributes of variable length point into them, so they count as metadata. Raw data may happen to
// begin with the same bytes.
inline bool IsGlobalHeap(size_t size, const void* bytes) {
  constexpr std::string_view kSignature = "GCOL\1";
  constexpr size_t kBytesMin = 4096;
  // A larger collection has one large object.
  constexpr size_t kBytesMax = 64 << 10;
  return size >= kBytesMin && size <= kBytesMax &&
         std::string_view(static_cast<const char*>(bytes), kSignature.size()) == kSignature;
}

inline H5mWriteClass WriteClassOf(H5FD_mem_t type, size_t size, const void* bytes) {
  return type != H5FD_MEM_DRAW || IsGlobalHeap(size, bytes) ? H5M_WRITE_METADATA : H5M_WRITE_RAW;
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_WRITE_CLASS_H_
