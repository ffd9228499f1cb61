#include "base/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

namespace h5mirror {
namespace {

OwnedFd AboveStandardStreams(OwnedFd fd) {
  if (!fd.valid() || fd.get() > STDERR_FILENO) return fd;
  return OwnedFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

}  // namespace

OwnedFd OpenBeneath(int root, const std::string& path, int flags, uint32_t mode_bits) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = mode_bits;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: a rename elsewhere raced with the resolution (openat2(2)).
  for (int attempt = 0;; ++attempt) {
    const int fd = static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == 100) {
      return AboveStandardStreams(OwnedFd(fd));
    }
  }
}

}  // namespace h5mirror
