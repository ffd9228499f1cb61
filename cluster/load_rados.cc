#include "cluster/load_rados.h"

#include <dlfcn.h>

#include <string_view>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/version.h"

namespace h5mirror::cluster {
namespace {

absl::StatusOr<const RadosApi*> Load() {
  // Found by the program's RUNPATH.
  void* const handle = dlopen(kRadosModuleFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return absl::FailedPreconditionError(
        StrCat("a cluster needs ", kRadosModuleFile,
               ", which cannot be loaded: ", reason != nullptr ? reason : "no reason is known",
               "; it is built where librados-dev and libcephfs-dev are installed, and needs "
               "librados2 and libcephfs2 to run"));
  }
  const auto get = reinterpret_cast<GetRadosApi>(dlsym(handle, kRadosModuleSymbol));
  const RadosApi* const api = get != nullptr ? get() : nullptr;
  if (api == nullptr || api->size != sizeof(RadosApi) ||
      std::string_view(api->release) != kVersion) {
    return absl::FailedPreconditionError(
        StrCat(kRadosModuleFile, " belongs to another release: install h5mirrord and it together"));
  }
  return api;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RadosCluster>> OpenRados(const RadosPlace& place) {
  static const auto* const loaded = new absl::StatusOr<const RadosApi*>(Load());
  H5M_ASSIGN_OR_RETURN(const RadosApi* const api, *loaded);
  return api->open(place);
}

}  // namespace h5mirror::cluster
