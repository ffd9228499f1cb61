#include "base/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

namespace h5mirror {

OwnedFd OpenBeneath(int root, const std::string& path, int flags, uint32_t mode_bits) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = mode_bits;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: a rename elsewhere raced with the resolution (openat2(2)).
  for (int attempt = 0;; ++attempt) {
    const int fd = static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == 100) return OwnedFd(fd);
  }
}

}  // namespace h5mirror
