// How the local file is opened: through the driver below, with the lock that HDF5 would take.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_LOCAL_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_LOCAL_OPEN_H_

#include <sys/stat.h>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/open/open_facts.h"
#include "client_vfd/plugin/open/open_files.h"

namespace h5mirror::vfd {

struct LocalOpened {
  H5FD_t* under = nullptr;  // null: the reason is on the host's error stack
  int fd = -1;              // the driver's; -1: it has none
  struct stat status {};    // as it was before the lock
  FileKey key;
};

// A file that this process has open already is not locked again.
LocalOpened OpenLocked(const OpenCall& call);

// Closes the driver below. Where the open fails: why, stays on the error stack, which a call of the
// library clears.
herr_t CloseUnder(const HostLibrary& host, H5FD_t* under);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_LOCAL_OPEN_H_
