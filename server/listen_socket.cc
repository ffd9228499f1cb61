#include "server/listen_socket.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

absl::Status CannotListen(const ListenAddress& address, std::string_view why) {
  return absl::UnavailableError(StrCat("cannot listen on ", address.text, ": ", why));
}

absl::Status ProbeUnix(const ListenAddress& address) {
  struct stat info {};
  if (lstat(address.path.c_str(), &info) != 0) {
    if (errno != ENOENT) return CannotListen(address, strerror(errno));
    const std::string parent = std::filesystem::path(address.path).parent_path().string();
    return access(parent.c_str(), W_OK | X_OK) == 0 ? absl::OkStatus()
                                                    : CannotListen(address, strerror(errno));
  }
  if (!S_ISSOCK(info.st_mode)) return CannotListen(address, "a file that is no socket is there");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return CannotListen(address, strerror(errno));
  const absl::Cleanup closer = [fd] { close(fd); };
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, address.path.c_str(), address.path.size() + 1);
  if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) {
    return CannotListen(address, "another process listens there");
  }
  return absl::OkStatus();
}

absl::Status ProbeOne(const ListenAddress& address, const addrinfo& candidate) {
  const int fd = socket(candidate.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return CannotListen(address, strerror(errno));
  const absl::Cleanup closer = [fd] { close(fd); };
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, candidate.ai_addr, candidate.ai_addrlen) != 0 || listen(fd, 1) != 0) {
    return CannotListen(address, strerror(errno));
  }
  return absl::OkStatus();
}

absl::Status ProbeTcp(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = StrCat(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  const absl::Cleanup freer = [found] { freeaddrinfo(found); };
  // One of several addresses is enough ("localhost" where there is no IPv6).
  absl::Status first = absl::OkStatus();
  for (const addrinfo* candidate = found; candidate != nullptr; candidate = candidate->ai_next) {
    const absl::Status status = ProbeOne(address, *candidate);
    if (status.ok()) return status;
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace

absl::Status ProbeAddress(const ListenAddress& address) {
  return address.reach == Reach::kUnixSocket ? ProbeUnix(address) : ProbeTcp(address);
}

absl::Status OpenSocketToGroup(const std::filesystem::path& path, uint32_t mode_bits,
                               const std::string& group) {
  if (!group.empty()) {
    const struct group* entry = getgrnam(group.c_str());
    if (entry == nullptr)
      return absl::NotFoundError(StrCat("group = \"", group, "\": no such group"));
    if (chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0) {
      return ErrnoToStatus(errno, StrCat("give ", path.string(), " to group ", group));
    }
  }
  if (chmod(path.c_str(), mode_bits) != 0) {
    return ErrnoToStatus(errno, StrCat("chmod ", path.string()));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
