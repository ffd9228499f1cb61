// Puts a socket in place so that nobody can connect before its permissions are right.
#ifndef H5MIRROR_SWMR_AGENT_SOCKET_PLACE_H_
#define H5MIRROR_SWMR_AGENT_SOCKET_PLACE_H_

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/owned_fd.h"

namespace h5mirror::agent {

// The socket is bound in a directory of our own, gets its permissions there, and only then its
// name: the umask, which is the whole process's, has no part in it. Not thread-safe.
class SocketPlace {
 public:
  // Makes way at `path`: its directory, and no socket that nobody listens on any more.
  // Errors: kUnavailable names `path`, and why: another agent is there, or it cannot be made.
  static absl::StatusOr<std::unique_ptr<SocketPlace>> Prepare(const std::filesystem::path& path);
  // Leaves nothing but the socket that Publish() has put in place.
  ~SocketPlace();
  SocketPlace(const SocketPlace&) = delete;

  // To be bound; short for any `path`, as the names of sockets must be.
  const std::string& bind_path() const { return bind_path_; }
  // The bound socket gets `mode_bits` and its name. kUnavailable as above.
  absl::Status Publish(mode_t mode_bits);

 private:
  explicit SocketPlace(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;
  std::string directory_;  // our own; empty: it is not there
  int directory_fd_ = -1;
  std::string bind_path_;
};

// A socket that listens at a place, before it is published, and does not block. Errors: as
// ErrnoToStatus().
absl::StatusOr<OwnedFd> ListenAt(const SocketPlace& place);

// The user at the other end of a connection, as the kernel says; nullopt: it does not.
std::optional<uid_t> UserOfConnection(int fd);

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_SOCKET_PLACE_H_
