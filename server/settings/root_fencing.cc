#include "server/settings/root_fencing.h"

#include <sys/vfs.h>

#include "base/strings.h"
#include "ceph/root_url.h"

namespace h5mirror::server {
namespace {

struct SharedFileSystem {
  uint64_t f_type;
  std::string_view name;
};

// statfs(2), linux/magic.h, and the sources of those that are not in the kernel.
constexpr SharedFileSystem kShared[] = {
    {0x6969, "NFS"},        {0x00C36400, "a mounted CephFS"},
    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"},
    {0xFF534D42, "SMB"},    {0xFE534D42, "SMB"},
    {0x517B, "SMB"},        {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},    {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},
};

}  // namespace

std::string_view SharedFileSystemName(uint64_t f_type) {
  for (const SharedFileSystem& each : kShared) {
    if (each.f_type == f_type) return each.name;
  }
  return "";
}

absl::Status CheckRootFencing(const Config& config) {
  if (config.root_fencing == RootFencing::kNone || ceph::IsRootUrl(config.root.native())) {
    return absl::OkStatus();
  }
  struct statfs system {};
  if (statfs(config.root.c_str(), &system) != 0) return absl::OkStatus();
  // f_type is signed, and 32 bits of it count.
  const std::string_view name = SharedFileSystemName(static_cast<uint32_t>(system.f_type));
  if (name.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("root = \"", config.root.string(), "\" is on ", name,
             ", where nothing keeps a server that was taken for dead from writing on. If this "
             "server alone will ever serve this root, set root_fencing = \"none\"; "
             "docs/how-to/serve-a-root-on-ceph.md says what can go wrong"));
}

}  // namespace h5mirror::server
