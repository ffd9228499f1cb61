// The face of libh5mirror_ceph.so, which h5mirrord loads where its root is in CephFS. C++ objects
// pass it, so both sides must be of one build: the loader compares `release`.
#ifndef H5MIRROR_CEPH_MODULE_API_H_
#define H5MIRROR_CEPH_MODULE_API_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "ceph/root_url.h"

namespace h5mirror::ceph {

// Told once that this client is fenced, as Fence::Listener.
using FencedListener = std::function<void(const std::string& why)>;

// The identity of a session, by which a server that takes over fences it.
struct SessionIdentity {
  std::string uuid;       // by which the MDS ends it
  std::string addresses;  // as ceph_getaddrs() tells them; empty: it does not
};

// One mount of CephFS. Must outlive its trees, files and locks.
//
// OpenTree() takes the root's own URL, or a path below it, as "/x" for PATH/x.
class MountedEnv : public Env {
 public:
  // For the log: the session's uuid and address, by which an operator or another server can end it.
  virtual std::string SessionName() const = 0;
  virtual SessionIdentity Session() const = 0;
};

struct ModuleApi {
  size_t size;          // of this struct
  const char* release;  // kVersion
  // Errors: kUnavailable   the cluster does not answer within client_mount_timeout (30 s, unless
  //                        Ceph's configuration says otherwise).
  //         kNotFound      no configuration, or no such path.
  //         kPermissionDenied  the key, or its caps.
  absl::StatusOr<std::unique_ptr<MountedEnv>> (*mount)(const RootUrl& url,
                                                       FencedListener on_fenced);
};

using GetModuleApi = const ModuleApi* (*)();
inline constexpr char kModuleFile[] = "libh5mirror_ceph.so";
inline constexpr char kModuleSymbol[] = "h5mirror_ceph_api";

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_MODULE_API_H_
