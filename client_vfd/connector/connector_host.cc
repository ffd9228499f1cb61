#include "client_vfd/connector/connector_host.h"

#include <dlfcn.h>

namespace h5mirror::vol {
namespace {

template <typename T>
bool Find(void* handle, const char* name, T* out) {
  *out = reinterpret_cast<T>(dlsym(handle, name));
  return *out != nullptr;
}

}  // namespace

std::optional<Host> LoadHost(const vfd::HostLibrary& library) {
  if (!library.api.usable) return std::nullopt;
  Host host{.library = library, .api = library.api, .more = {}};
  ConnectorApi& more = host.more;
  void* const handle = library.handle;
  const bool found =
      Find(handle, "H5VLget_connector_id_by_name", &more.vl_get_connector_id_by_name) &&
      Find(handle, "H5VLintrospect_get_conn_cls", &more.vl_introspect_get_conn_cls) &&
      Find(handle, "H5Eclear2", &more.e_clear) && Find(handle, "H5Pinsert2", &more.p_insert) &&
      Find(handle, "H5Pget_driver", &more.p_get_driver) &&
      Find(handle, "H5Pset_driver", &more.p_set_driver) &&
      Find(handle, "H5Pset_driver_by_name", &more.p_set_driver_by_name) &&
      Find(handle, "H5Pget_vol_info", &more.p_get_vol_info) &&
      Find(handle, "H5Pset_fapl_stdio", &more.p_set_fapl_stdio) &&
      Find(handle, "H5Pset_fapl_core", &more.p_set_fapl_core) &&
      Find(handle, "H5Pget_fapl_core", &more.p_get_fapl_core) &&
      Find(handle, "H5Pget_file_image", &more.p_get_file_image) &&
      Find(handle, "H5free_memory", &more.free_memory) &&
      Find(handle, "H5Pget_fapl_family", &more.p_get_fapl_family) &&
      Find(handle, "H5Pset_fapl_family", &more.p_set_fapl_family) &&
      Find(handle, "H5Pget_fapl_multi", &more.p_get_fapl_multi) &&
      Find(handle, "H5Pset_fapl_multi", &more.p_set_fapl_multi) &&
      Find(handle, "H5Pset_multi_type", &more.p_set_multi_type);
  if (!found) return std::nullopt;
  return host;
}

const H5VL_class_t* NativeClassOf(const Host& host) {
  unsigned major = 0, minor = 0, release = 0;
  // 1.12 has another class, and calls what a plugin gives it unchecked.
  if (host.api.get_libversion(&major, &minor, &release) < 0) return nullptr;
  if (major < 1 || (major == 1 && minor < 14)) return nullptr;
  const hid_t native = host.more.vl_get_connector_id_by_name(H5VL_NATIVE_NAME);
  if (native < 0) return nullptr;  // else a reference that is kept: HDF5 has it to its end
  const H5VL_class_t* cls = nullptr;
  // The connector does not look at the object, but HDF5 wants one.
  int any_object = 0;
  if (host.more.vl_introspect_get_conn_cls(&any_object, native, H5VL_GET_CONN_LVL_CURR, &cls) < 0) {
    return nullptr;
  }
  return cls != nullptr && cls->version == H5VL_VERSION ? cls : nullptr;
}

}  // namespace h5mirror::vol
