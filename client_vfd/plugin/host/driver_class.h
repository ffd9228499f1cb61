// The table of callbacks that a host library registers: declared here, made by driver.cc.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_DRIVER_CLASS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_DRIVER_CLASS_H_

#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

// The HDF5 file driver "h5mirror".
H5FD_class_t MakeDriverClass();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_DRIVER_CLASS_H_
