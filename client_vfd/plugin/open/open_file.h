// How HDF5's opens become files of the driver's modes.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_

#include <memory>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/driver_file.h"

namespace h5mirror::vfd {

// Opens the file as HDF5 asks. Null: it failed, and the reason is on the host's error stack.
std::unique_ptr<DriverFile> OpenFileFor(HostLibrary& host, const char* name, unsigned flags,
                                        hid_t fapl, haddr_t maxaddr);

// The reason why HDF5 may not delete the local file `name`: the program means a file on a server.
// Unset: it may.
Problem ProblemOfDeleting(const HostLibrary& host, const char* name, hid_t fapl);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_
