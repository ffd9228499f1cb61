// Which bytes of a file the dataspace selections of one call name.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_SELECTIONS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_SELECTIONS_H_

#include <cstddef>
#include <cstdint>

#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/parallel/noted_pages.h"

namespace h5mirror::vfd {

// Adds what write_selection of H5FD_class_t is given; the arrays are as there: an element size of 0
// stands for the one before it, and for all that follow. False: the host cannot tell them.
bool AddSelections(const HostApi& api, size_t count, const hid_t* spaces, const haddr_t* offsets,
                   const size_t* element_sizes, NotedPages* pages);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_SELECTIONS_H_
