#include "cluster/rados/ceph_fencer.h"

#include <cephfs/libcephfs.h>
#include <errno.h>

#include "absl/cleanup/cleanup.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {
namespace {

// Adding an address again extends its time.
constexpr uint32_t kBlockSeconds = 365 * 24 * 60 * 60;

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

// The error of a call to Ceph for a fencing. Every error may pass, except the fencing of this
// client itself.
absl::Status FenceError(int error, std::string_view what) {
  const absl::Status status = CephError(error, what);
  return absl::IsInternal(status) ? status : absl::UnavailableError(status.message());
}

}  // namespace

absl::Status CephFencer::EndSession(const std::string& id, const std::string& session) {
  const RadosPlace& place = connection_.place();
  const std::string what = StrCat("end the session ", session, " of ", id);
  ceph_mount_info* mount = nullptr;
  if (const int made = ceph_create(&mount, OrNull(place.id)); made < 0) {
    return FenceError(-made, what);
  }
  const absl::Cleanup release = [mount] { ceph_release(mount); };
  ceph_conf_set(mount, "client_mount_timeout", "10");
  if (const int read = ceph_conf_read_file(mount, OrNull(place.conf)); read < 0) {
    return FenceError(-read, what);
  }
  ceph_conf_parse_env(mount, nullptr);
  if (const int begun = ceph_init(mount); begun < 0) return FenceError(-begun, what);
  if (!place.filesystem.empty()) {
    const int chosen = ceph_select_filesystem(mount, place.filesystem.c_str());
    if (chosen < 0) return FenceError(-chosen, what);
  }
  const int reset = ceph_start_reclaim(mount, session.c_str(), CEPH_RECLAIM_RESET);
  ceph_finish_reclaim(mount);
  // ENOENT: it has ended by itself. EOPNOTSUPP: an old MDS, whose locks time out; the blocklist
  // keeps its writes off all the same.
  if (reset >= 0 || reset == -ENOENT || reset == -EOPNOTSUPP) return absl::OkStatus();
  return FenceError(-reset, what);
}

absl::Status CephFencer::Block(const FenceTarget& target) {
  for (const std::string& address : target.addresses) {
    std::string text = address;  // librados wants to be able to write to it.
    const int added = rados_blocklist_add(connection_.get(), text.data(), kBlockSeconds);
    if (added < 0) return FenceError(-added, StrCat("block ", address, " of ", target.id));
  }
  return absl::OkStatus();
}

absl::Status CephFencer::Fence(const FenceTarget& target) {
  if (target.addresses.empty()) {
    return absl::InvalidArgumentError(
        StrCat("the server ", target.id, " has told no address, and cannot be fenced"));
  }
  if (!target.session.empty()) H5M_RETURN_IF_ERROR(EndSession(target.id, target.session));
  for (const std::string& mount : target.mounts) {
    H5M_RETURN_IF_ERROR(EndSession(target.id, mount));
  }
  H5M_RETURN_IF_ERROR(Block(target));
  const int known = rados_wait_for_latest_osdmap(connection_.get());
  return known >= 0 ? absl::OkStatus() : FenceError(-known, "wait for the OSDs' newest map");
}

}  // namespace h5mirror::cluster
