// The HDF5 file driver "h5mirror": the table of callbacks that a host library registers.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_DRIVER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_DRIVER_H_

#include "client_vfd/plugin/hdf5_headers.h"

namespace h5mirror::vfd {

// A class of its own for each host library.
H5FD_class_t MakeDriverClass();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_DRIVER_H_
