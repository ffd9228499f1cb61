// The calls of HDF5 to a driver of several ranks only: I/O of many pieces at once. Collective I/O
// comes this way, and ranks without a piece call with none.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_PARALLEL_BYTES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_PARALLEL_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

// The arguments of read_vector and write_vector of H5FD_class_t, without the buffers. Borrowed.
struct VectorIo {
  hid_t dxpl;
  uint32_t count;
  H5FD_mem_t* types;
  haddr_t* addresses;
  size_t* sizes;
};

// The arguments of read_selection and write_selection, likewise.
struct SelectionIo {
  H5FD_mem_t type;
  hid_t dxpl;
  size_t count;
  hid_t* memory_spaces;
  hid_t* file_spaces;
  haddr_t* offsets;
  size_t* element_sizes;
};

class ParallelBytes {
 public:
  virtual ~ParallelBytes() = default;
  virtual herr_t ReadVector(const VectorIo& io, void** buffers) = 0;
  virtual herr_t WriteVector(const VectorIo& io, const void** buffers) = 0;
  virtual herr_t ReadSelection(const SelectionIo& io, void** buffers) = 0;
  virtual herr_t WriteSelection(const SelectionIo& io, const void** buffers) = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_PARALLEL_BYTES_H_
