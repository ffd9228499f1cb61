#include "client_vfd/plugin/host/standard_error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace h5mirror::vfd {
namespace {

std::optional<std::pair<dev_t, ino_t>> FileOfDescriptor2() {
  const int flags = fcntl(STDERR_FILENO, F_GETFD);
  struct stat now {};
  if (flags < 0 || (flags & FD_CLOEXEC) != 0 || fstat(STDERR_FILENO, &now) != 0) {
    return std::nullopt;
  }
  return std::pair(now.st_dev, now.st_ino);
}

}  // namespace

StandardError::StandardError() : file_(FileOfDescriptor2()) {}

bool StandardError::IsThere() const { return file_.has_value() && FileOfDescriptor2() == file_; }

const StandardError& FirstStandardError() {
  static const StandardError first;
  return first;
}

}  // namespace h5mirror::vfd
