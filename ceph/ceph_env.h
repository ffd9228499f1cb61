// Env over libcephfs.
#ifndef H5MIRROR_CEPH_CEPH_ENV_H_
#define H5MIRROR_CEPH_CEPH_ENV_H_

#include <memory>
#include <string>

#include "base/machine.h"
#include "ceph/module_api.h"
#include "ceph/mount.h"

namespace h5mirror::ceph {

// Clock and groups are this machine's.
class CephEnv final : public MountedEnv, public KnowsBootTime {
 public:
  // Errors: as ModuleApi::mount.
  static absl::StatusOr<std::unique_ptr<MountedEnv>> Open(const RootUrl& url,
                                                          FencedListener on_fenced);

  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override;
  absl::Time Now() override { return Env::Posix().Now(); }
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override {
    return Env::Posix().GroupNumber(group);
  }
  std::optional<BootTime> SinceBoot() override;
  std::string SessionName() const override { return mount_->session_name(); }
  SessionIdentity Session() const override { return mount_->session(); }

  CephMount& mount() { return *mount_; }

 private:
  CephEnv(std::unique_ptr<CephMount> mount, const FileSizeMax& file_sizes)
      : mount_(std::move(mount)), file_sizes_(file_sizes) {}

  const std::unique_ptr<CephMount> mount_;
  const FileSizeMax file_sizes_;
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_CEPH_ENV_H_
