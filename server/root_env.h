// The file system that a server's root is on: this machine's, or CephFS.
#ifndef H5MIRROR_SERVER_ROOT_ENV_H_
#define H5MIRROR_SERVER_ROOT_ENV_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ceph/module_api.h"
#include "server/settings/config.h"

namespace h5mirror::server {

class RootEnv {
 public:
  // `on_fenced` is told once that this server must write no more; CephFS alone tells. Errors: as
  // ceph::Mount(), and of CheckRootFencing().
  static absl::StatusOr<RootEnv> Open(const Config& config, ceph::FencedListener on_fenced);

  // Lives as long as this.
  Env& env() const { return mounted_ == nullptr ? Env::Posix() : *mounted_; }
  // For the log; empty: the root is on this machine.
  std::string SessionName() const { return mounted_ == nullptr ? "" : mounted_->SessionName(); }

 private:
  explicit RootEnv(std::unique_ptr<ceph::MountedEnv> mounted) : mounted_(std::move(mounted)) {}

  std::unique_ptr<ceph::MountedEnv> mounted_;  // null: this machine's
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_ROOT_ENV_H_
