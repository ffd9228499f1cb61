// The two functions that HDF5 looks for in a plugin.
#include "client_vfd/plugin/host/driver_class.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/host/reporter.h"

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_VFD; }

// Called from inside the host, possibly while it is being initialized: no HDF5 function that
// initializes may be called on this way.
const void* H5PLget_plugin_info(void) {
  try {
    h5mirror::vfd::ReportLoaded(h5mirror::vfd::FindHost(__builtin_return_address(0)),
                                "plugin_loaded");
    static const H5FD_class_t driver_class = h5mirror::vfd::MakeDriverClass();
    return &driver_class;  // each host makes a copy
  } catch (...) {
    return nullptr;
  }
}
