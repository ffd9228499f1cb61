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

#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/modes/reader_file.h"
#include "client_vfd/plugin/open/open_facts.h"

namespace h5mirror::vfd {

// As PlanOpen() allows. Null: it failed, and the reason is on the host's error stack.
std::unique_ptr<DriverFile> OpenRemote(const OpenCall& call, ReaderTarget target);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_REMOTE_OPEN_H_
