#include "ceph/mount.h"

#include <errno.h>
#include <pthread.h>

#include <cstdlib>

#include "base/errno_status.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::ceph {
namespace {

constexpr absl::Duration kBeatEvery = absl::Seconds(1);

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

// As uuidgen(1) writes it.
std::string NewUuid() {
  const std::string hex = HexOf(RandomBytes16());
  return StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                hex.substr(16, 4), "-", hex.substr(20));
}

std::string AddressOf(ceph_mount_info* mount) {
  char* text = nullptr;
  if (ceph_getaddrs(mount, &text) < 0 || text == nullptr) return "";
  std::string address(text);
  std::free(text);
  return address;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CephMount>> CephMount::Open(const RootUrl& url,
                                                           FencedListener on_fenced) {
  std::unique_ptr<CephMount> mount(new CephMount(url, std::move(on_fenced)));
  H5M_RETURN_IF_ERROR(mount->Begin());
  mount->beats_ = std::thread([&mount = *mount] {
    pthread_setname_np(pthread_self(), "h5m-ceph-beat");
    mount.RunBeats();
  });
  return mount;
}

absl::Status CephMount::Configure() {
  // Before the file, so that an administrator can set more.
  ceph_conf_set(mount_, "client_mount_timeout", "30");
  // Times, and sizes of files that grew, go to the MDS a minute after the change instead of 5 s, if
  // no sync asks for them. Another client that wants to know need not wait for that, since the MDS
  // then asks this one.
  ceph_conf_set(mount_, "client_caps_release_delay", "60");
  if (const int read = ceph_conf_read_file(mount_, OrNull(url_.conf)); read < 0) {
    return ErrnoToStatus(-read, StrCat("read Ceph's configuration ",
                                       url_.conf.empty() ? "at its usual places" : url_.conf));
  }
  ceph_conf_parse_env(mount_, nullptr);
  struct Option {
    const char* name;
    const char* value;
  };
  for (const Option& option : {
           // A session that was ended must stay so, or the fencing ends with it.
           Option{"client_reconnect_stale", "false"},
           Option{"client_acl_type", "posix_acl"},
           // Modes are for other clients: the key's caps say what this one may do.
           Option{"fuse_default_permissions", "true"},
           Option{"client_permissions", "false"},
       }) {
    if (const int set = ceph_conf_set(mount_, option.name, option.value); set < 0) {
      return ErrnoToStatus(-set, StrCat("set Ceph's option ", option.name));
    }
  }
  char name[256] = "";
  if (ceph_conf_get(mount_, "client_snapdir", name, sizeof(name)) >= 0) snapshot_name_ = name;
  return absl::OkStatus();
}

absl::Status CephMount::Begin() {
  const std::string what = StrCat("mount ", url_.ToString());
  if (const int made = ceph_create(&mount_, OrNull(url_.id)); made < 0) {
    return ErrnoToStatus(-made, what);
  }
  H5M_RETURN_IF_ERROR(Configure());
  if (const int begun = ceph_init(mount_); begun < 0) return ErrnoToStatus(-begun, what);
  if (!url_.filesystem.empty()) {
    const int chosen = ceph_select_filesystem(mount_, url_.filesystem.c_str());
    if (chosen < 0) return ErrnoToStatus(-chosen, what);
  }
  const std::string uuid = NewUuid();
  ceph_set_uuid(mount_, uuid.c_str());
  if (const int mounted = ceph_mount(mount_, url_.path.c_str()); mounted < 0) {
    return ErrnoToStatus(-mounted, what);
  }
  is_mounted_ = true;
  session_ = {uuid, AddressOf(mount_)};
  return absl::OkStatus();
}

std::string CephMount::session_name() const {
  return StrCat("session ", session_.uuid, " at ",
                session_.addresses.empty() ? "an unknown address" : session_.addresses);
}

CephMount::~CephMount() {
  if (beats_.joinable()) {
    stop_.Set();
    beats_.join();
  }
  if (mount_ == nullptr) return;
  // To give up a session that is gone at once, not after its timeouts.
  if (is_mounted_ && fence_.is_tripped()) ceph_abort_conn(mount_);
  if (is_mounted_) ceph_unmount(mount_);
  ceph_release(mount_);
}

void CephMount::RunBeats() {
  while (!stop_.AwaitSet(kBeatEvery)) {
    pauses_.Beat();
    Gate().IgnoreError();  // An idle server ends too, before it is asked for anything.
  }
}

absl::Status CephMount::Gate() {
  if (fence_.is_tripped()) return fence_.Check();
  if (!pauses_.is_too_long()) return absl::OkStatus();
  return fence_.Trip(StrCat("the process stood still for ", HumanDuration(pauses_.Pause()),
                            ", and others may have taken the root over meanwhile"));
}

absl::Status CephMount::Check(int64_t result, std::string_view what, std::string_view path) {
  if (result >= 0) return absl::OkStatus();
  const int error = static_cast<int>(-result);
  const absl::Status status = ErrnoToStatus(error, StrCat(what, " ", path));
  if (!MeansFenced(error)) return status;
  return fence_.Trip(StrCat("its session has been ended (", ToStd(status.message()), ")"));
}

absl::Status CephMount::Guard(Inode* inode, std::string_view path) {
  CephStat stx{};
  const int got = ceph_ll_getattr(mount_, inode, &stx, CEPH_STATX_SIZE, 0, perms());
  // After a pause an answer says nothing about the sync before it.
  if (got >= 0) return Gate();
  // An MDS that refuses to open a session anew answers so.
  const int error = -got == EPERM ? ESHUTDOWN : -got;
  const absl::Status failed = Check(-error, "ask, after a sync, for the size of", path);
  return absl::InternalError(failed.message());
}

}  // namespace h5mirror::ceph
