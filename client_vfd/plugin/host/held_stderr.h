// Standard error of a program that has closed it, while a file is opened.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HELD_STDERR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HELD_STDERR_H_

#include <fcntl.h>
#include <unistd.h>

#include "base/owned_fd.h"
#include "client_vfd/plugin/host/standard_error.h"

namespace h5mirror::vfd {

// While it lives, no file that is opened gets descriptor 2: HDF5's lines for people would be
// written into that file. (Ours never are, see standard_error.h.) Does nothing where the program
// has standard error.
class HeldStderr {
 public:
  HeldStderr() {
    FirstStandardError();  // Before anything is opened.
    if (fcntl(STDERR_FILENO, F_GETFD) >= 0) return;
    // It writes nothing: O_PATH.
    held_ = OwnedFd(open("/", O_PATH | O_CLOEXEC));
    // If 0 or 1 is closed too, open() returned that number instead of 2.
    if (held_.valid() && held_.get() != STDERR_FILENO) {
      held_ = OwnedFd(fcntl(held_.get(), F_DUPFD_CLOEXEC, STDERR_FILENO));
    }
  }
  ~HeldStderr() {
    // The program may have put a new standard error there meanwhile, in another thread.
    const int flags = held_.valid() ? fcntl(held_.get(), F_GETFL) : -1;
    if (flags < 0 || (flags & O_PATH) == 0) held_.Release();
  }
  HeldStderr(const HeldStderr&) = delete;
  HeldStderr& operator=(const HeldStderr&) = delete;

 private:
  OwnedFd held_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_HELD_STDERR_H_
