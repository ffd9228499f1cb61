// The bytes of one open file, as layers between HDF5 and the local driver or server. Each layer
// passes calls on to the one that it lies over:
//
//   LeftOutBytes    tells that no server gets the file, at its first change
//   BufferedFile    metadata=memory
//   MirroredFile    the mirrors, where it has some
//   UnderFile       the file itself, below the driver
//
// Called by one thread at a time, as HDF5 does.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FILE_BYTES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FILE_BYTES_H_

#include <cstddef>

#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

class FileBytes {
 public:
  FileBytes() = default;
  virtual ~FileBytes() = default;
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  // As H5FD_class_t's.
  virtual herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) = 0;
  virtual herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                       const void* buffer) = 0;
  virtual herr_t Truncate(hid_t dxpl, hbool_t closing) = 0;
  virtual herr_t Flush(hid_t dxpl, hbool_t closing) = 0;
  virtual haddr_t Eof(H5FD_mem_t type) const = 0;
  // Before the close of the layer below: hands on the bytes that this layer holds.
  virtual herr_t BeforeClose() { return 0; }
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FILE_BYTES_H_
