#include "base/standard_streams.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <string>

namespace h5mirror {

void HoldStandardStreams() {
  // An O_PATH descriptor reads and writes nothing. "/" exists even without /dev.
  int fd = 0;
  do fd = open("/", O_PATH | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

absl::Status FlushStandardOutput() {
  errno = 0;
  if (std::cout.flush()) return absl::OkStatus();
  const std::string reason = errno == 0 ? std::string() : std::string(": ") + strerror(errno);
  return absl::InternalError("standard output could not be written" + reason);
}

}  // namespace h5mirror
