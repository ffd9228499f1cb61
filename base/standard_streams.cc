#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace h5mirror {

void HoldStandardStreams() {
  // An O_PATH descriptor reads and writes nothing. "/" exists even without /dev.
  int fd = 0;
  do fd = open("/", O_PATH | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace h5mirror
