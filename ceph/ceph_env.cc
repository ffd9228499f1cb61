#include "ceph/ceph_env.h"

#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "ceph/file_size_max.h"
#include "ceph/tree.h"

namespace h5mirror::ceph {

absl::StatusOr<std::unique_ptr<MountedEnv>> CephEnv::Open(const RootUrl& url,
                                                          FencedListener on_fenced) {
  H5M_ASSIGN_OR_RETURN(auto mount, CephMount::Open(url, std::move(on_fenced)));
  FileSizeMax file_sizes;
  const auto bytes = AskFileSizeMax(url, ceph_get_fs_cid(mount->get()));
  if (bytes.has_value() && *bytes < static_cast<uint64_t>(INT64_MAX)) file_sizes.bytes = *bytes;
  return std::unique_ptr<MountedEnv>(new CephEnv(std::move(mount), file_sizes));
}

absl::StatusOr<std::unique_ptr<EnvTree>> CephEnv::OpenTree(const std::filesystem::path& root) {
  const RootUrl& url = mount_->url();
  if (IsRootUrl(root.native())) {
    H5M_ASSIGN_OR_RETURN(const RootUrl asked, ParseRootUrl(root.native()));
    if (asked == url) return CephTree::Open(*mount_, "/", StrCat("cephfs:", url.path), file_sizes_);
    return absl::InvalidArgumentError(
        StrCat(root.native(), " is not what is mounted: ", url.ToString()));
  }
  std::string directory = root.lexically_normal().string();
  if (!directory.starts_with("/")) {
    return absl::InvalidArgumentError(StrCat(directory, " is no absolute path in CephFS"));
  }
  while (directory.size() > 1 && directory.ends_with("/")) directory.pop_back();
  const std::string shown = url.path == "/" ? directory : url.path + directory;
  return CephTree::Open(*mount_, directory, StrCat("cephfs:", shown), file_sizes_);
}

std::optional<BootTime> CephEnv::SinceBoot() {
  auto* const boot = dynamic_cast<KnowsBootTime*>(&Env::Posix());
  return boot == nullptr ? std::nullopt : boot->SinceBoot();
}

}  // namespace h5mirror::ceph
