// A host library: the libhdf5 that calls the plugin. One process can have several (a wheel's, the
// system's), each with its own ids and error stacks, but the plugin is mapped once. So there is one
// slot for each host, found by the address that a call returns to.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HOST_LIBRARY_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HOST_LIBRARY_H_

#include <string>

#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

// The host's functions and ids, by dlsym. Where the host is a static executable that exports
// nothing, `usable` is false and all of them are null.
struct HostApi {
  bool usable = false;
  decltype(&::H5get_libversion) get_libversion = nullptr;
  decltype(&::H5FDopen) fd_open = nullptr;
  decltype(&::H5FDclose) fd_close = nullptr;
  decltype(&::H5Pcopy) p_copy = nullptr;
  decltype(&::H5Pclose) p_close = nullptr;
  decltype(&::H5Pexist) p_exist = nullptr;
  decltype(&::H5Pget) p_get = nullptr;
  decltype(&::H5Pset_fapl_sec2) p_set_fapl_sec2 = nullptr;
  decltype(&::H5Pget_driver_config_str) p_get_driver_config_str = nullptr;
  decltype(&::H5Pget_driver_info) p_get_driver_info = nullptr;
  decltype(&::H5Pget_file_locking) p_get_file_locking = nullptr;
  decltype(&::H5Eget_auto2) e_get_auto = nullptr;
  decltype(&::H5Eset_auto2) e_set_auto = nullptr;
  decltype(&::H5Eget_current_stack) e_get_current_stack = nullptr;
  decltype(&::H5Eset_current_stack) e_set_current_stack = nullptr;
  decltype(&::H5Eget_num) e_get_num = nullptr;
  decltype(&::H5Epush2) e_push = nullptr;
  // Optional: null where the host was built without the driver.
  herr_t (*p_set_fapl_direct)(hid_t, size_t, size_t, size_t) = nullptr;
  herr_t (*p_set_fapl_log)(hid_t, const char*, unsigned long long, size_t) = nullptr;
  herr_t (*p_set_driver)(hid_t, hid_t, const void*) = nullptr;
  decltype(&::H5Iget_ref) i_get_ref = nullptr;
  const hid_t* p_default_fapl = nullptr;
  // The id of mpio's driver in a parallel host. HDF5 has one of the two, by its version.
  hid_t (*fd_mpio_init)() = nullptr;
  const hid_t* fd_mpio_id = nullptr;
  decltype(&::H5Sget_select_npoints) s_get_select_npoints = nullptr;
  decltype(&::H5Ssel_iter_create) s_sel_iter_create = nullptr;
  decltype(&::H5Ssel_iter_get_seq_list) s_sel_iter_get_seq_list = nullptr;
  decltype(&::H5Ssel_iter_close) s_sel_iter_close = nullptr;
  // Values live in the host and are filled in by its initialization: read them late.
  const hid_t* e_err_cls = nullptr;
  const hid_t* e_file = nullptr;
  const hid_t* e_vfl = nullptr;
  const hid_t* e_cantopenfile = nullptr;
  const hid_t* e_readerror = nullptr;
  const hid_t* e_writeerror = nullptr;
};

struct HostLibrary {
  HostApi api;
  std::string path;        // of the shared object, or of the executable
  std::string version;     // "1.14.5", "unknown"
  void* handle = nullptr;  // for dlsym; null if the host cannot be found
  unsigned long link_map = 0;
};

// The host whose code holds `return_address`; made at its first call, never freed. Thread-safe.
HostLibrary& FindHost(const void* return_address);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HOST_LIBRARY_H_
