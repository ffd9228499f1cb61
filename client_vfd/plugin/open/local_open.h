// How the local file is opened: through the driver below, with the lock that HDF5 would take.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_LOCAL_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_LOCAL_OPEN_H_

#include <sys/stat.h>

#include <memory>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/modes/open_files.h"
#include "client_vfd/plugin/modes/under_file.h"
#include "client_vfd/plugin/open/open_facts.h"

namespace h5mirror::vfd {

struct LocalOpened {
  // Null: the reason is on the host's error stack.
  std::unique_ptr<UnderFile> under;
  int fd = -1;            // of `under`; -1: it has none
  struct stat status {};  // as it was before the lock
  FileKey key;
};

// A file that this process has open already is not locked again.
LocalOpened OpenLocked(const OpenCall& call);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_LOCAL_OPEN_H_
