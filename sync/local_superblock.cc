#include "sync/local_superblock.h"

#include <string>

#include "base/status_macros.h"
#include "cli/process/io.h"

namespace h5mirror::tools {

Hdf5State LookAtHdf5(int fd, uint64_t size_bytes) {
  return h5mirror::LookAtHdf5(size_bytes, [fd](Extent extent) -> absl::StatusOr<std::string> {
    std::string bytes(extent.length, '\0');
    H5M_ASSIGN_OR_RETURN(const size_t got,
                         PreadUpTo(fd, extent.offset, bytes.data(), bytes.size(), ""));
    bytes.resize(got);
    return bytes;
  });
}

}  // namespace h5mirror::tools
