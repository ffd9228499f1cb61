// The sockets that a server listens on. They are not gRPC's: gRPC 1.51 never accepts again after an
// accept() that failed for want of descriptors (CVE-2023-4785), and has no limit of connections.
#ifndef H5MIRROR_SERVER_DOOR_LISTEN_SOCKET_H_
#define H5MIRROR_SERVER_DOOR_LISTEN_SOCKET_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/owned_fd.h"
#include "server/settings/listen_address.h"

struct sockaddr;

namespace h5mirror::server {

// One address, bound and listening.
class ListenSocket {
 public:
  // Binds and listens. A host name may stand for several addresses: one that works is enough, and
  // all have the same port. A stale Unix socket is replaced. The new one gets `group`, if one is
  // named, and `socket_mode_bits` before a client can connect.
  // Errors: kUnavailable  the address cannot be bound, or another process listens there; the
  // message
  //                       names address and reason.
  //         kNotFound     no such group.
  //         those of chown() and chmod().
  static absl::StatusOr<ListenSocket> Open(const ListenAddress& address, uint32_t socket_mode_bits,
                                           const std::string& group);

  // Removes the name of a Unix socket, if it is still this one's.
  ~ListenSocket();
  ListenSocket(ListenSocket&&) noexcept = default;
  ListenSocket& operator=(ListenSocket&&) = delete;

  // Non-blocking.
  const std::vector<OwnedFd>& descriptors() const { return descriptors_; }
  bool is_unix() const { return !path_.empty(); }
  // The port that was bound; 1 for a Unix socket.
  int port() const { return port_; }

 private:
  ListenSocket() = default;

  absl::Status OpenUnix(const ListenAddress& address, uint32_t mode_bits, const std::string& group);
  absl::Status OpenTcp(const ListenAddress& address);
  absl::Status BindOne(const ListenAddress& address, const sockaddr* name, socklen_t length);

  std::vector<OwnedFd> descriptors_;
  int port_ = 0;
  std::filesystem::path path_;  // of a Unix socket that is bound
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_LISTEN_SOCKET_H_
