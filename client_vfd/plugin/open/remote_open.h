// mode=remote: the open of a file on the server.
//
//   read                the newest cut, pinned, as in mode=reader
//   read and write      the same. The first change asks the server for the file, which must still
//                       be at that cut
//   create, truncate    asks the server at once. A former file stays until the first cut
//
// A file that the process writes is one file for all of its opens: HDF5 finds by cmp() that it has
// the file open.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_REMOTE_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_REMOTE_OPEN_H_

#include <memory>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/reader_file.h"
#include "client_vfd/plugin/open/open_file.h"

namespace h5mirror::vfd {

// `mode_bits`: for a file that is made. Null: it failed, and the reason is on the host's error
// stack.
std::unique_ptr<OpenFile> OpenRemote(HostLibrary& host, std::shared_ptr<const Config> config,
                                     ReaderTarget target, unsigned flags, unsigned mode_bits);

// Closes a file of OpenRemote(); the caller then deletes it.
herr_t CloseRemote(OpenFile& file);

// As H5FD_class_t's cmp, for two files with a `remote_key`.
int CompareRemote(const OpenFile& a, const OpenFile& b);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_REMOTE_OPEN_H_
