#include "client_vfd/plugin/session_loader.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>

namespace h5mirror::vfd {
namespace {

std::atomic<const H5mSessionApi*> loaded{nullptr};

// The directory of this very library.
std::string OwnDirectory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&LoadSession), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

const H5mSessionApi* Load(std::string* error) {
  const std::string path = OwnDirectory() + H5M_SESSION_LIBRARY;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    *error = reason != nullptr ? reason : path + ": cannot be loaded";
    return nullptr;
  }
  const auto get = reinterpret_cast<H5mGetSessionApi>(dlsym(handle, H5M_SESSION_SYMBOL));
  const H5mSessionApi* api = get != nullptr ? get() : nullptr;
  if (api == nullptr || api->abi != H5M_SESSION_ABI || api->size != sizeof(H5mSessionApi)) {
    *error =
        path + ": belongs to another release; install the plugin and the session module together";
    return nullptr;
  }
  return api;
}

}  // namespace

const H5mSessionApi* LoadSession(std::string* error) {
  static auto* mutex = new std::mutex;
  static auto* failure = new std::string;
  std::lock_guard lock(*mutex);
  if (loaded.load() == nullptr && failure->empty()) loaded.store(Load(failure));
  *error = *failure;
  return loaded.load();
}

const H5mSessionApi* LoadedSession() { return loaded.load(); }

}  // namespace h5mirror::vfd
