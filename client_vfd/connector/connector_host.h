// A host of the connector: a libhdf5 that loads it. One process can have several, and the connector
// is mapped once. So each host has a slot, and callbacks of its own that know their slot at compile
// time (callbacks.h).
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_CONNECTOR_HOST_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_CONNECTOR_HOST_H_

#include <optional>

#include "client_vfd/connector/vol_headers.h"
#include "client_vfd/plugin/host/host_library.h"

namespace h5mirror::vol {

// The host's functions that the connector needs beside those of the driver (vfd::HostApi).
struct ConnectorApi {
  decltype(&::H5VLget_connector_id_by_name) vl_get_connector_id_by_name = nullptr;
  decltype(&::H5VLintrospect_get_conn_cls) vl_introspect_get_conn_cls = nullptr;
  decltype(&::H5Eclear2) e_clear = nullptr;
  decltype(&::H5Pinsert2) p_insert = nullptr;
  decltype(&::H5Pget_driver) p_get_driver = nullptr;
  decltype(&::H5Pset_driver) p_set_driver = nullptr;
  decltype(&::H5Pset_driver_by_name) p_set_driver_by_name = nullptr;
  decltype(&::H5Pget_vol_info) p_get_vol_info = nullptr;
  decltype(&::H5Pset_fapl_stdio) p_set_fapl_stdio = nullptr;
  decltype(&::H5Pset_fapl_core) p_set_fapl_core = nullptr;
  decltype(&::H5Pget_fapl_core) p_get_fapl_core = nullptr;
  decltype(&::H5Pget_file_image) p_get_file_image = nullptr;
  decltype(&::H5free_memory) free_memory = nullptr;
  decltype(&::H5Pget_fapl_family) p_get_fapl_family = nullptr;
  decltype(&::H5Pset_fapl_family) p_set_fapl_family = nullptr;
  decltype(&::H5Pget_fapl_multi) p_get_fapl_multi = nullptr;
  decltype(&::H5Pset_fapl_multi) p_set_fapl_multi = nullptr;
  decltype(&::H5Pset_multi_type) p_set_multi_type = nullptr;
};

struct Host {
  const vfd::HostLibrary& library;
  const vfd::HostApi& api;  // the library's
  ConnectorApi more;
};

// nullopt if a function is missing: a static host that exports nothing.
std::optional<Host> LoadHost(const vfd::HostLibrary& library);

// The class of HDF5's own connector; null if the host does not give it, has another form of it, or
// is older than 1.14. May be called while the library is being initialized.
const H5VL_class_t* NativeClassOf(const Host& host);

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_CONNECTOR_HOST_H_
