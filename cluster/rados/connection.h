// A connection to a cluster of Ceph by librados.
#ifndef H5MIRROR_CLUSTER_RADOS_CONNECTION_H_
#define H5MIRROR_CLUSTER_RADOS_CONNECTION_H_

#include <rados/librados.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/rados_api.h"

namespace h5mirror::cluster {

// Of an errno of librados or libcephfs, as the errors of Registry and Fencer: kInternal means that
// this client is on the blocklist, kUnavailable everything that may go away.
absl::Status CephError(int error, std::string_view what);

// Thread-safe. Calls end with kUnavailable after 10 s: a server must be able to stop while Ceph is
// away, and the protocol takes an unknown result.
class Connection {
 public:
  // Errors: as RadosApi::open.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const RadosPlace& place);
  ~Connection();
  Connection(const Connection&) = delete;

  rados_t get() const { return cluster_; }
  int64_t pool_id() const { return pool_id_; }
  const RadosPlace& place() const { return place_; }
  std::vector<std::string> Addresses() const;

 private:
  explicit Connection(const RadosPlace& place) : place_(place) {}
  absl::Status Begin();

  const RadosPlace place_;
  rados_t cluster_ = nullptr;
  int64_t pool_id_ = -1;
};

// An I/O context of one call: librados keeps the version of the last operation in it.
class IoContext {
 public:
  explicit IoContext(const Connection& connection) {
    error_ = rados_ioctx_create2(connection.get(), connection.pool_id(), &io_);
  }
  ~IoContext() {
    if (error_ >= 0) rados_ioctx_destroy(io_);
  }
  IoContext(const IoContext&) = delete;

  absl::Status status() const {
    return error_ >= 0 ? absl::OkStatus() : CephError(-error_, "open the registry's pool");
  }
  rados_ioctx_t get() const { return io_; }

 private:
  rados_ioctx_t io_ = nullptr;
  int error_ = 0;
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RADOS_CONNECTION_H_
