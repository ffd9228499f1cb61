// A file that is written with mode=remote, as a driver below the driver: what RemoteMode has as its
// `under`. There is no local file. What the program writes goes to a spool, a nameless sparse file,
// from where the session sends it (MirroredFile lies above, as over a local file). What it has not
// written since the open is read from the server, at the cut that was opened, through the readers'
// cache.
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

// `cut`: of ReaderClass(), which it takes over; null: the file begins as an empty one.
H5FD_t* MakeRemote(const HostLibrary& host, std::shared_ptr<const Config> config,
                   const ReaderTarget& target, H5FD_t* cut);

const H5FD_class_t* RemoteClass();

// Of files of RemoteClass(): the spool's descriptor, which stays the file's. The spool is made at
// the first call. -1, and the reason in `error`, where none can be made.
int SpoolOf(H5FD_t* file, std::string* error);

// The cut that was opened; 0: none.
int64_t BaseCutOf(const H5FD_t* file);

// `newest`: which cut the server has confirmed last to the session that writes the file. Where the
// opened cut has expired there, reads go on at a cut of that session: what the program has not
// written is the same in it.
void SetNewestCut(H5FD_t* file, std::function<int64_t()> newest);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_REMOTE_FILE_H_
