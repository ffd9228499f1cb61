// A file that is written with mode=remote, as a driver below the driver: RemoteMode's `under`.
// There is no local file. The program's writes go to a spool, a nameless sparse file, and the
// session sends them from there (MirroredFile lies above, as over a local file). All other bytes
// are read from the server, at the cut that was opened, through the readers' cache.
//
//   read    written since the open?  the spool
//           else, within the size of the cut that was opened (less what was cut off since): the cut
//           else zeros
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/reader_file.h"

namespace h5mirror::vfd {

// `cut`: a file of ReaderClass(), which this takes over; null: the file begins empty.
H5FD_t* MakeRemote(const HostLibrary& host, std::shared_ptr<const Config> config,
                   const ReaderTarget& target, H5FD_t* cut);

const H5FD_class_t* RemoteClass();

// For files of RemoteClass(): the spool's descriptor, which the file owns. The first call makes the
// spool. -1: it cannot be made, and `error` says why.
int SpoolOf(H5FD_t* file, std::string* error);

// The cut that was opened; 0: none.
int64_t BaseCutOf(const H5FD_t* file);

// `newest` gives the last cut that the server has confirmed to the session of the file. If the
// opened cut expires there, reads go on at a cut of that session: bytes that the program has not
// written are the same in it.
void SetNewestCut(H5FD_t* file, std::function<int64_t()> newest);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_
