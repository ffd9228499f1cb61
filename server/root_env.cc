#include "server/root_env.h"

#include <utility>

#include "base/status_macros.h"
#include "ceph/load_module.h"
#include "server/settings/root_fencing.h"

namespace h5mirror::server {

absl::StatusOr<RootEnv> RootEnv::Open(const Config& config, ceph::FencedListener on_fenced) {
  if (!ceph::IsRootUrl(config.root.native())) {
    H5M_RETURN_IF_ERROR(CheckRootFencing(config));
    return RootEnv(nullptr);
  }
  H5M_ASSIGN_OR_RETURN(const ceph::RootUrl url, ceph::ParseRootUrl(config.root.native()));
  H5M_ASSIGN_OR_RETURN(auto mounted, ceph::Mount(url, std::move(on_fenced)));
  return RootEnv(std::move(mounted));
}

}  // namespace h5mirror::server
