#include "client_vfd/plugin/host/host_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <mutex>
#include <vector>

#include "client_vfd/plugin/host/h5_error.h"

namespace h5mirror::vfd {
namespace {

std::mutex& HostsMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::vector<HostLibrary*>& Hosts() {
  static auto* hosts = new std::vector<HostLibrary*>;
  return *hosts;
}

template <typename T>
bool Find(void* handle, const char* name, T* out) {
  *out = reinterpret_cast<T>(dlsym(handle, name));
  return *out != nullptr;
}

// Where the host's data lives. A C program that names H5E_FILE has a copy of H5E_FILE_g, made by
// the loader (a copy relocation), and the host reads and writes that copy. The one inside the host
// stays as it was compiled. The copy is found through the global scope, if that scope leads to this
// host.
void* DataOf(void* handle) {
  void* const ours = dlsym(handle, "H5open");
  return dlsym(RTLD_DEFAULT, "H5open") == ours ? RTLD_DEFAULT : handle;
}

HostApi LoadApi(void* handle) {
  void* const data = DataOf(handle);
  HostApi api;
  api.usable = Find(handle, "H5get_libversion", &api.get_libversion) &&
               Find(handle, "H5FDopen", &api.fd_open) && Find(handle, "H5FDclose", &api.fd_close) &&
               Find(handle, "H5Pcopy", &api.p_copy) && Find(handle, "H5Pclose", &api.p_close) &&
               Find(handle, "H5Pexist", &api.p_exist) && Find(handle, "H5Pget", &api.p_get) &&
               Find(handle, "H5Pset_fapl_sec2", &api.p_set_fapl_sec2) &&
               Find(handle, "H5Pget_driver_config_str", &api.p_get_driver_config_str) &&
               Find(handle, "H5Pget_driver_info", &api.p_get_driver_info) &&
               Find(handle, "H5Pget_file_locking", &api.p_get_file_locking) &&
               Find(handle, "H5Eget_auto2", &api.e_get_auto) &&
               Find(handle, "H5Eset_auto2", &api.e_set_auto) &&
               Find(handle, "H5Eget_current_stack", &api.e_get_current_stack) &&
               Find(handle, "H5Eset_current_stack", &api.e_set_current_stack) &&
               Find(handle, "H5Eget_num", &api.e_get_num) &&
               Find(handle, "H5Epush2", &api.e_push) &&
               Find(data, "H5E_ERR_CLS_g", &api.e_err_cls) &&
               Find(data, "H5E_FILE_g", &api.e_file) && Find(data, "H5E_VFL_g", &api.e_vfl) &&
               Find(data, "H5E_CANTOPENFILE_g", &api.e_cantopenfile) &&
               Find(data, "H5E_READERROR_g", &api.e_readerror) &&
               Find(data, "H5E_WRITEERROR_g", &api.e_writeerror);
  if (!api.usable) return HostApi();
  Find(handle, "H5Pset_fapl_direct", &api.p_set_fapl_direct);
  Find(handle, "H5Pset_fapl_log", &api.p_set_fapl_log);
  Find(handle, "H5Pset_driver", &api.p_set_driver);
  Find(handle, "H5Iget_ref", &api.i_get_ref);
  Find(data, "H5P_LST_FILE_ACCESS_ID_g", &api.p_default_fapl);
  Find(handle, "H5FD_mpio_init", &api.fd_mpio_init);
  Find(data, "H5FD_MPIO_id_g", &api.fd_mpio_id);
  Find(handle, "H5Sget_select_npoints", &api.s_get_select_npoints);
  Find(handle, "H5Ssel_iter_create", &api.s_sel_iter_create);
  Find(handle, "H5Ssel_iter_get_seq_list", &api.s_sel_iter_get_seq_list);
  Find(handle, "H5Ssel_iter_close", &api.s_sel_iter_close);
  return api;
}

std::string VersionOf(const HostApi& api) {
  if (!api.usable) return "unknown";
  unsigned major = 0, minor = 0, release = 0;
  // After an open that failed HDF5 looks through all plugins, and then tells of that open.
  const KeepErrors keep(api);
  // Safe inside the library's own initialization: it only returns compiled-in numbers.
  if (api.get_libversion(&major, &minor, &release) < 0) return "unknown";
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::string ExecutablePath() {
  std::array<char, PATH_MAX> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length)) : "the program";
}

HostLibrary* MakeHost(const link_map* map) {
  auto* host = new HostLibrary;
  host->link_map = reinterpret_cast<uintptr_t>(map);
  const bool is_executable = map == nullptr || map->l_name == nullptr || *map->l_name == '\0';
  host->path = is_executable ? ExecutablePath() : map->l_name;
  // RTLD_NOLOAD only finds what is loaded; the handle is kept, since the library calls into us.
  host->handle = dlopen(is_executable ? nullptr : map->l_name, RTLD_NOLOAD | RTLD_LAZY);
  if (host->handle != nullptr) host->api = LoadApi(host->handle);
  host->version = VersionOf(host->api);
  return host;
}

}  // namespace

HostLibrary& FindHost(const void* return_address) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(return_address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    map = nullptr;
  }
  std::lock_guard lock(HostsMutex());
  for (HostLibrary* host : Hosts()) {
    if (host->link_map == reinterpret_cast<uintptr_t>(map)) return *host;
  }
  Hosts().push_back(MakeHost(map));
  return *Hosts().back();
}

}  // namespace h5mirror::vfd
