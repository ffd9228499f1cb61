#include "cluster/rados/connection.h"

#include <errno.h>

#include <cstdlib>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cluster/addresses.h"

namespace h5mirror::cluster {
namespace {

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

absl::Status CephError(int error, std::string_view what) {
  const absl::Status status = ErrnoToStatus(error, what);
  // Ceph's EBLOCKLISTED is ESHUTDOWN.
  if (error == ESHUTDOWN) return absl::InternalError(status.message());
  if (absl::IsPermissionDenied(status) || absl::IsNotFound(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const RadosPlace& place) {
  std::unique_ptr<Connection> connection(new Connection(place));
  H5M_RETURN_IF_ERROR(connection->Begin());
  return connection;
}

absl::Status Connection::Begin() {
  const std::string what = StrCat("connect to Ceph for the pool ", place_.pool);
  if (const int made = rados_create(&cluster_, OrNull(place_.id)); made < 0) {
    cluster_ = nullptr;
    return CephError(-made, what);
  }
  // Before the file, so that an administrator can set others.
  for (const char* const option : {"rados_osd_op_timeout", "rados_mon_op_timeout"}) {
    if (const int set = rados_conf_set(cluster_, option, "10"); set < 0) {
      return CephError(-set, StrCat("set Ceph's option ", option));
    }
  }
  rados_conf_set(cluster_, "client_mount_timeout", "30");
  if (const int read = rados_conf_read_file(cluster_, OrNull(place_.conf)); read < 0) {
    return CephError(-read, StrCat("read Ceph's configuration ",
                                   place_.conf.empty() ? "at its usual places" : place_.conf));
  }
  rados_conf_parse_env(cluster_, nullptr);
  if (const int connected = rados_connect(cluster_); connected < 0) {
    return CephError(-connected, what);
  }
  pool_id_ = rados_pool_lookup(cluster_, place_.pool.c_str());
  if (pool_id_ < 0) return CephError(static_cast<int>(-pool_id_), what);
  return absl::OkStatus();
}

Connection::~Connection() {
  if (cluster_ != nullptr) rados_shutdown(cluster_);
}

std::vector<std::string> Connection::Addresses() const {
  char* text = nullptr;
  if (rados_getaddrs(cluster_, &text) < 0 || text == nullptr) return {};
  const std::vector<std::string> addresses = SplitAddresses(text);
  std::free(text);
  return addresses;
}

}  // namespace h5mirror::cluster
