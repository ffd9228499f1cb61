#include "client_vfd/plugin/host/session_loader.h"

#include <dlfcn.h>
#include <fcntl.h>

#include <array>
#include <atomic>
#include <mutex>

#include "base/owned_fd.h"

namespace h5mirror::vfd {
namespace {

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

// Free descriptors that a module needs at its start. gRPC and the other libraries of a module took
// 12. gRPC aborts the program if it gets none.
constexpr size_t kDescriptorsMin = 32;

bool HasDescriptors() {
  std::array<OwnedFd, kDescriptorsMin> taken;
  for (OwnedFd& each : taken) {
    each = OwnedFd(open("/", O_PATH | O_CLOEXEC));
    if (!each.valid()) return false;
  }
  return true;
}

// One of the two modules. Its exported function returns a struct that begins with ABI number and
// size.
template <typename Api>
class Module {
 public:
  constexpr Module(const char* file, const char* symbol, uint32_t abi)
      : file_(file), symbol_(symbol), abi_(abi) {}

  const Api* Get(std::string* error) {
    static auto* mutex = new std::mutex;
    static auto* failure = new std::string;
    std::lock_guard lock(*mutex);
    if (loaded_.load() == nullptr && failure->empty()) {
      if (!HasDescriptors()) {
        *error = "fewer than " + std::to_string(kDescriptorsMin) +
                 " file descriptors are left to the program: raise `ulimit -n`";
        return nullptr;  // It may close some, and is asked again.
      }
      loaded_.store(Load(failure));
    }
    *error = *failure;
    return loaded_.load();
  }
  const Api* loaded() const { return loaded_.load(); }

 private:
  const Api* Load(std::string* error) const {
    const std::string path = OwnDirectory() + file_;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      *error = reason != nullptr ? reason : path + ": cannot be loaded";
      return nullptr;
    }
    const auto get = reinterpret_cast<const Api* (*)()>(dlsym(handle, symbol_));
    const Api* api = get != nullptr ? get() : nullptr;
    if (api == nullptr || api->abi != abi_ || api->size != sizeof(Api)) {
      *error = path + ": belongs to another release; install the plugin and its modules together";
      return nullptr;
    }
    return api;
  }

  const char* const file_;
  const char* const symbol_;
  const uint32_t abi_;
  std::atomic<const Api*> loaded_{nullptr};
};

// The type makes them two: each has its own mutex and failure in Get().
constinit Module<H5mSessionApi> session(H5M_SESSION_LIBRARY, H5M_SESSION_SYMBOL, H5M_SESSION_ABI);
constinit Module<H5mEmbeddedApi> embedded(H5M_EMBEDDED_LIBRARY, H5M_EMBEDDED_SYMBOL,
                                          H5M_EMBEDDED_ABI);

}  // namespace

const H5mSessionApi* LoadSession(std::string* error) { return session.Get(error); }
const H5mEmbeddedApi* LoadEmbedded(std::string* error) { return embedded.Get(error); }

const H5mSessionApi* LoadedSession() { return session.loaded(); }
const H5mEmbeddedApi* LoadedEmbedded() { return embedded.loaded(); }

}  // namespace h5mirror::vfd
