#include "client_vfd/embedded/head_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_status.h"
#include "base/strings.h"

namespace h5mirror::vfd {

void HeadLock::LetGo() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status HeadLock::Take(const std::string& path) {
  // Over NFS an exclusive lock wants a descriptor to write with (flock(2)).
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return errno == ENOENT ? absl::OkStatus() : ErrnoToStatus(errno, StrCat("open ", path));
  struct stat held {
  }, named{};
  if (fd_ >= 0 && fstat(fd_, &held) == 0 && fstat(fd, &named) == 0 && held.st_ino == named.st_ino &&
      held.st_dev == named.st_dev) {
    close(fd);
    return absl::OkStatus();
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno != ENOSYS && errno != ENOTSUP) {
    const absl::Status status =
        errno == EWOULDBLOCK ? absl::UnavailableError(
                                   "unable to lock file, errno = 11, error message = 'Resource "
                                   "temporarily unavailable'")
                             : ErrnoToStatus(errno, StrCat("lock ", path));
    close(fd);
    return status;
  }
  LetGo();
  fd_ = fd;
  return absl::OkStatus();
}

}  // namespace h5mirror::vfd
