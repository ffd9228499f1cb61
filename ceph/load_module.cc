#include "ceph/load_module.h"

#include <dlfcn.h>

#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/version.h"

namespace h5mirror::ceph {
namespace {

absl::StatusOr<const ModuleApi*> Load() {
  // Found by the program's RUNPATH.
  void* const handle = dlopen(kModuleFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return absl::FailedPreconditionError(
        StrCat("a root in CephFS needs ", kModuleFile,
               ", which cannot be loaded: ", reason != nullptr ? reason : "no reason is known",
               "; it is built where libcephfs-dev is installed, and needs libcephfs2 to run"));
  }
  const auto get = reinterpret_cast<GetModuleApi>(dlsym(handle, kModuleSymbol));
  const ModuleApi* const api = get != nullptr ? get() : nullptr;
  if (api == nullptr || api->size != sizeof(ModuleApi) ||
      std::string_view(api->release) != kVersion) {
    return absl::FailedPreconditionError(
        StrCat(kModuleFile, " belongs to another release: install h5mirrord and it together"));
  }
  return api;
}

}  // namespace

absl::StatusOr<const ModuleApi*> LoadModule() {
  static const auto* const loaded = new absl::StatusOr<const ModuleApi*>(Load());
  return *loaded;
}

absl::StatusOr<std::unique_ptr<MountedEnv>> Mount(const RootUrl& url, FencedListener on_fenced) {
  H5M_ASSIGN_OR_RETURN(const ModuleApi* const api, LoadModule());
  return api->mount(url, std::move(on_fenced));
}

}  // namespace h5mirror::ceph
