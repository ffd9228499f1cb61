// Opens a local file for several ranks of a program (under=mpio).
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_PARALLEL_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_PARALLEL_OPEN_H_

#include <memory>

#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/open/open_facts.h"

namespace h5mirror::vfd {

// Collective. Rank 0 looks at the file and decides for all of them: one rank that refuses an open
// in which the others wait would hang them. `look_ahead` is done on rank 0 before it looks. Null:
// the open failed, on all ranks, and the reason is on each one's error stack.
std::unique_ptr<DriverFile> OpenParallel(const OpenCall& call, FileFacts& facts,
                                         void (*look_ahead)(const OpenCall&));

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_PARALLEL_OPEN_H_
