#include "swmr_agent/socket_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string_view>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::agent {
namespace {

constexpr char kName[] = "h5mirror-agent.new";

absl::Status CannotListen(const std::filesystem::path& path, std::string_view why) {
  return absl::UnavailableError(StrCat("cannot listen on ", path.string(), ": ", why));
}

absl::Status RemoveStale(const std::filesystem::path& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT && access(path.parent_path().c_str(), W_OK | X_OK) == 0
               ? absl::OkStatus()
               : CannotListen(path, strerror(errno));
  }
  if (!S_ISSOCK(info.st_mode)) return CannotListen(path, "a file that is no socket is there");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotListen(path, strerror(errno));
  const absl::Cleanup closer = [fd] { close(fd); };
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof(name.sun_path)) return CannotListen(path, "it is too long");
  memcpy(name.sun_path, path.c_str(), path.string().size() + 1);
  // EAGAIN: a program listens there, but is busy.
  if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0 || errno == EAGAIN) {
    return CannotListen(path, "another agent is there");
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketPlace>> SocketPlace::Prepare(
    const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path().parent_path(), error);
  mkdir(path.parent_path().c_str(), 0700);  // RemoveStale() says what is wrong with it.
  H5M_RETURN_IF_ERROR(RemoveStale(path));
  std::unique_ptr<SocketPlace> place(new SocketPlace(path));
  std::string directory = (path.parent_path() / ".h5mirror-agent-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return CannotListen(path, strerror(errno));
  place->directory_ = std::move(directory);
  if (chmod(place->directory_.c_str(), 0700) != 0) return CannotListen(path, strerror(errno));
  place->directory_fd_ = open(place->directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (place->directory_fd_ < 0) return CannotListen(path, strerror(errno));
  place->bind_path_ = StrCat("/proc/self/fd/", place->directory_fd_, "/", kName);
  return place;
}

SocketPlace::~SocketPlace() {
  if (directory_.empty()) return;
  unlink(StrCat(directory_, "/", kName).c_str());
  rmdir(directory_.c_str());
  if (directory_fd_ >= 0) close(directory_fd_);
}

absl::Status SocketPlace::Publish(mode_t mode_bits) {
  const std::string bound = StrCat(directory_, "/", kName);
  if (chmod(bound.c_str(), mode_bits) != 0) {
    return CannotListen(path_, StrCat("chmod: ", strerror(errno)));
  }
  // Not rename(): that would push out one that has come meanwhile.
  if (link(bound.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  return CannotListen(path_, errno == EEXIST ? "another agent is there" : strerror(errno));
}

absl::StatusOr<OwnedFd> ListenAt(const SocketPlace& place) {
  const std::string& path = place.bind_path();
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, path.c_str(), path.size() + 1);
  if (fd.get() < 0 || bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return ErrnoToStatus(errno, "listen for readers");
  }
  return fd;
}

std::optional<uid_t> UserOfConnection(int fd) {
  ucred user{};
  socklen_t length = sizeof(user);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0) return std::nullopt;
  // Nobody's: the kernel did not know when the connection was made.
  return user.uid == static_cast<uid_t>(-1) ? std::nullopt : std::optional<uid_t>(user.uid);
}

}  // namespace h5mirror::agent
