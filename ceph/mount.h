// One mount of CephFS by libcephfs, and the gate that every call passes.
#ifndef H5MIRROR_CEPH_MOUNT_H_
#define H5MIRROR_CEPH_MOUNT_H_

#include <cephfs/libcephfs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/stop_flag.h"
#include "ceph/fence.h"
#include "ceph/module_api.h"
#include "ceph/pause_watch.h"
#include "ceph/root_url.h"
#include "ceph/sync_need.h"

namespace h5mirror::ceph {

// The struct's own name is also that of a function.
using CephStat = struct ceph_statx;

// Longer than the life of a silent session (session_autoclose, 300 s), and well below that of a
// blocklist entry (mon_osd_blocklist_default_expire, 3,600 s).
inline constexpr absl::Duration kPauseMax = absl::Minutes(15);

// Thread-safe. Its destructor ends the session, if it is not fenced.
class CephMount {
 public:
  // Errors: as ModuleApi::mount.
  static absl::StatusOr<std::unique_ptr<CephMount>> Open(const RootUrl& url,
                                                         FencedListener on_fenced);
  ~CephMount();
  CephMount(const CephMount&) = delete;

  ceph_mount_info* get() const { return mount_; }
  const UserPerm* perms() const { return ceph_mount_perms(mount_); }
  const RootUrl& url() const { return url_; }
  // "session UUID at ADDRESS"
  std::string session_name() const;
  const SessionIdentity& session() const { return session_; }
  // The name below each directory that holds its snapshots.
  const std::string& snapshot_name() const { return snapshot_name_; }
  Fence& fence() { return fence_; }
  SyncNeeds& sync_needs() { return sync_needs_; }

  // To be asked before each call. kInternal: fenced.
  absl::Status Gate();
  // Of a call's result: below 0 it is an errno. kInternal, for all that follows too, if it means
  // that this client is fenced; else as ErrnoToStatus().
  absl::Status Check(int64_t result, std::string_view what, std::string_view path);
  // Check after each successful sync: only OK from here means that the data is synced. Errors are
  // always kInternal.
  absl::Status Guard(Inode* inode, std::string_view path);

 private:
  CephMount(const RootUrl& url, FencedListener on_fenced)
      : url_(url), fence_(std::move(on_fenced)), pauses_(clock_, kPauseMax) {}

  absl::Status Begin();
  absl::Status Configure();
  void RunBeats();

  const RootUrl url_;
  SystemClock clock_;
  Fence fence_;
  PauseWatch pauses_;
  ceph_mount_info* mount_ = nullptr;
  bool is_mounted_ = false;
  SessionIdentity session_;
  std::string snapshot_name_;
  SyncNeeds sync_needs_;
  StopFlag stop_;
  std::thread beats_;
};

// Owns one reference to an inode. Movable.
class InodeRef {
 public:
  InodeRef() = default;
  InodeRef(CephMount& mount, Inode* inode) : mount_(&mount), inode_(inode) {}
  InodeRef(InodeRef&& other) noexcept
      : mount_(other.mount_), inode_(std::exchange(other.inode_, nullptr)) {}
  InodeRef& operator=(InodeRef&& other) noexcept {
    std::swap(mount_, other.mount_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  // References of a fenced mount are not given back, because a call might never return.
  ~InodeRef() {
    if (inode_ != nullptr && !mount_->fence().is_tripped()) ceph_ll_put(mount_->get(), inode_);
  }

  Inode* get() const { return inode_; }

 private:
  CephMount* mount_ = nullptr;
  Inode* inode_ = nullptr;
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_MOUNT_H_
