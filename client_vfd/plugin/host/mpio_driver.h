// HDF5's driver of several ranks, in a host that was built with MPI.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_MPIO_DRIVER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_MPIO_DRIVER_H_

#include "client_vfd/plugin/host/host_library.h"

namespace h5mirror::vfd {

// Its id; H5I_INVALID_HID: the host has none. 1.14 has a function for it, later releases a value.
inline hid_t MpioDriver(const HostApi& api) {
  hid_t driver = H5I_INVALID_HID;
  if (api.fd_mpio_init != nullptr) driver = api.fd_mpio_init();
  if (driver < 0 && api.fd_mpio_id != nullptr) driver = *api.fd_mpio_id;
  return driver;
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_MPIO_DRIVER_H_
