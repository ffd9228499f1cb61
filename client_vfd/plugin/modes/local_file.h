// The local half of an open file: a driver of the host library ("under"). It is opened through the
// public H5FDopen() and then called through its class, so that an I/O call costs one jump and no
// allocation. Where the host exports no functions (a static HDF5), this is a small POSIX driver of
// our own that acts as sec2.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LOCAL_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LOCAL_FILE_H_

#include <memory>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

// Whether HDF5 would lock the file: HDF5_USE_FILE_LOCKING, else the access property list.
enum class Locking { kYes, kNo };
Locking WantedLocking(const HostLibrary& host, hid_t fapl);

// Opens `name` as HDF5 asks. Null: the errors are on the host's stack, deepest first, exactly as
// the under driver wrote them: h5py reads errno from that text. A lock that fails leaves them there
// too. `host` must outlive the file.
std::unique_ptr<UnderFile> OpenLocal(const HostLibrary& host, const Config& config,
                                     const char* name, unsigned flags, hid_t fapl, haddr_t maxaddr);

// The POSIX file of local_posix.cc. Null: it cannot be opened.
std::unique_ptr<UnderFile> OpenPosix(const char* name, unsigned flags);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LOCAL_FILE_H_
