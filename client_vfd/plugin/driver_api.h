// The functions that H5FDh5mirror.h calls, which a program's handle to its open file leads to.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_DRIVER_API_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_DRIVER_API_H_

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/modes/driver_file.h"

namespace h5mirror::vfd {

// H5FDh5mirror.h puts the address of its table into the property list that it passes. Fills the
// table in; it is valid while `file` is open. False: the list holds no table.
bool FillApi(DriverFile& file, hid_t fapl);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_DRIVER_API_H_
