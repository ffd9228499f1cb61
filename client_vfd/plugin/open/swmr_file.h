// What the driver does for SWMR writers, beyond passing on what HDF5 reads and writes.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_SWMR_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_SWMR_FILE_H_

#include <cstddef>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/open/open_file.h"

namespace h5mirror::vfd {

// The next read of `file` is its first one; see OpenFile::unread.
inline bool IsUnread(const OpenFile& file) { return file.unread != nullptr; }

// Where an SWMR writer of it was killed, mends its superblock, as a change that this open makes.
// Fails, with the reason on the host's error stack, where that writer may be at work.
herr_t BeforeFirstRead(OpenFile* file);

// Where the layers of `file` begin: metadata in memory, mirror, local file.
herr_t WriteFile(OpenFile* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                 const void* bytes);

// Before the first write of a file that was opened for SWMR: the superblock that it has gets the
// flags of its writer.
herr_t MarkForSwmr(OpenFile* file);

// As WriteFile(), of bytes that begin with a superblock: with the flags of an SWMR writer it has
// them all, and the file's lock is given up.
herr_t WriteSuperblock(OpenFile* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                       const void* bytes);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_SWMR_FILE_H_
