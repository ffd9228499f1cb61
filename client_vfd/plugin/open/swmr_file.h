// The driver's work for SWMR writers, on top of HDF5's reads and writes.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_SWMR_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_SWMR_FILE_H_

#include <cstddef>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/open/open_file.h"

namespace h5mirror::vfd {

// True: the next read of `file` is its first one; see OpenFile::unread.
inline bool IsUnread(const OpenFile& file) { return file.unread != nullptr; }

// If an SWMR writer of the file was killed, mends the superblock, as a change of this open. Fails
// if that writer may be at work; the reason is on the host's error stack.
herr_t BeforeFirstRead(OpenFile* file);

// Writes through the layers of `file`: metadata in memory, mirror, local file.
herr_t WriteFile(OpenFile* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                 const void* bytes);

// Before the first write of a file that was opened for SWMR: gives the superblock in the file the
// writer's flags.
herr_t MarkForSwmr(OpenFile* file);

// As WriteFile(), for bytes that begin with a superblock. Completes the flags of an SWMR writer,
// and then gives the file's lock up, so that readers can open the file.
herr_t WriteSuperblock(OpenFile* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                       const void* bytes);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_SWMR_FILE_H_
