#include "server/door/listen_socket.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

// How long sent bytes may stay unacknowledged before the kernel gives a connection up. gRPC sets it
// on its own listeners to the timeout of the keepalive (mirror_server.cc).
constexpr unsigned kUserTimeoutMs = 10'000;

absl::Status CannotListen(const ListenAddress& address, std::string_view why) {
  return absl::UnavailableError(StrCat("cannot listen on ", address.text, " (listen): ", why));
}

absl::Status CannotListen(const ListenAddress& address, int error) {
  if (error != EADDRINUSE) return CannotListen(address, strerror(error));
  return CannotListen(address,
                      "the port is in use; `ss -ltnp` shows by which program: stop that, or set "
                      "another port");
}

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, path.c_str(), path.size() + 1);
  return name;
}

// Makes room for a Unix socket: a stale one goes, one that answers stays.
absl::Status RemoveStale(const ListenAddress& address) {
  struct stat info {};
  if (lstat(address.path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : CannotListen(address, errno);
  }
  if (!S_ISSOCK(info.st_mode)) return CannotListen(address, "a file that is no socket is there");
  const OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return CannotListen(address, errno);
  const sockaddr_un name = UnixName(address.path);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
    return CannotListen(address, "another process listens there");
  }
  if (unlink(address.path.c_str()) != 0 && errno != ENOENT) {
    return CannotListen(address, errno);
  }
  return absl::OkStatus();
}

absl::Status GiveToGroup(const std::string& path, uint32_t mode_bits, const std::string& group) {
  if (!group.empty()) {
    const struct group* entry = getgrnam(group.c_str());
    if (entry == nullptr)
      return absl::NotFoundError(StrCat("group = \"", group, "\": no such group"));
    struct stat info {};
    const bool has_it = stat(path.c_str(), &info) == 0 && info.st_gid == entry->gr_gid;
    if (!has_it && chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0) {
      return ErrnoToStatus(errno, StrCat("give ", path, " to group ", group));
    }
  }
  if (chmod(path.c_str(), mode_bits) != 0) return ErrnoToStatus(errno, StrCat("chmod ", path));
  return absl::OkStatus();
}

bool IsWildcard(const addrinfo& candidate) {
  return candidate.ai_family == AF_INET &&
         reinterpret_cast<const sockaddr_in*>(candidate.ai_addr)->sin_addr.s_addr == INADDR_ANY;
}

int PortOf(int fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

// Accepted sockets inherit these.
void SetTcpOptions(int fd, int family) {
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof(kUserTimeoutMs));
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
}

}  // namespace

absl::StatusOr<ListenSocket> ListenSocket::Open(const ListenAddress& address,
                                                uint32_t socket_mode_bits,
                                                const std::string& group) {
  ListenSocket opened;
  H5M_RETURN_IF_ERROR(address.reach == Reach::kUnixSocket
                          ? opened.OpenUnix(address, socket_mode_bits, group)
                          : opened.OpenTcp(address));
  return opened;
}

ListenSocket::~ListenSocket() {
  if (descriptors_.empty() || path_.empty()) return;
  struct stat info {};
  if (lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

absl::Status ListenSocket::OpenUnix(const ListenAddress& address, uint32_t mode_bits,
                                    const std::string& group) {
  H5M_RETURN_IF_ERROR(RemoveStale(address));
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return CannotListen(address, errno);
  const sockaddr_un name = UnixName(address.path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return CannotListen(address, errno);
  }
  struct stat info {};
  if (lstat(address.path.c_str(), &info) != 0) return CannotListen(address, errno);
  path_ = address.path;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  port_ = 1;
  // Until listen() nobody can connect.
  const absl::Status given = GiveToGroup(address.path, mode_bits, group);
  if (given.ok() && listen(fd.get(), SOMAXCONN) != 0) return CannotListen(address, errno);
  descriptors_.push_back(std::move(fd));
  return given;
}

absl::Status ListenSocket::BindOne(const ListenAddress& address, const sockaddr* name,
                                   socklen_t length) {
  OwnedFd fd(socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return CannotListen(address, errno);
  SetTcpOptions(fd.get(), name->sa_family);
  if (bind(fd.get(), name, length) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return CannotListen(address, errno);
  }
  port_ = PortOf(fd.get());
  descriptors_.push_back(std::move(fd));
  return absl::OkStatus();
}

absl::Status ListenSocket::OpenTcp(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), nullptr, &hints, &found); error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  const absl::Cleanup freer = [found] { freeaddrinfo(found); };
  // One of several addresses is enough ("localhost" where there is no IPv6).
  absl::Status first = absl::OkStatus();
  port_ = address.port;
  for (const addrinfo* candidate = found; candidate != nullptr; candidate = candidate->ai_next) {
    const auto port = htons(static_cast<uint16_t>(port_));
    if (IsWildcard(*candidate)) {  // All addresses are those of IPv6 too, where there is IPv6.
      sockaddr_in6 all{};
      all.sin6_family = AF_INET6;
      all.sin6_port = port;
      if (BindOne(address, reinterpret_cast<const sockaddr*>(&all), sizeof(all)).ok()) continue;
    }
    if (candidate->ai_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(candidate->ai_addr)->sin6_port = port;
    } else {
      reinterpret_cast<sockaddr_in*>(candidate->ai_addr)->sin_port = port;
    }
    const absl::Status status = BindOne(address, candidate->ai_addr, candidate->ai_addrlen);
    if (first.ok()) first = status;
  }
  return descriptors_.empty() ? first : absl::OkStatus();
}

}  // namespace h5mirror::server
