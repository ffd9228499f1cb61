#include "sync/closed_copy.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/superblock_image.h"
#include "cli/process/io.h"

namespace h5mirror::tools {

void SuperblockPatch::Apply(uint64_t data_offset, std::string* data) const {
  const uint64_t from = std::max(data_offset, offset);
  const uint64_t to = std::min(data_offset + data->size(), offset + bytes.size());
  if (from < to) data->replace(from - data_offset, to - from, bytes, from - offset, to - from);
}

absl::StatusOr<std::optional<SuperblockPatch>> FindSuperblockPatch(uint64_t size_bytes,
                                                                   ReadRange read) {
  // The specification puts it at 0, 512, and every doubling of that.
  for (uint64_t at = 0; at < size_bytes; at = at == 0 ? 512 : 2 * at) {
    H5M_ASSIGN_OR_RETURN(const std::string bytes,
                         read(at, std::min<uint64_t>(kSuperblockImageBytes, size_bytes - at)));
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kNo) continue;
    const std::optional<std::string> closed = ClosedSuperblock(bytes, at, size_bytes);
    if (closed) return SuperblockPatch{at, *closed};
    break;
  }
  return std::optional<SuperblockPatch>();
}

absl::StatusOr<std::optional<SuperblockPatch>> FindSuperblockPatchOf(int fd, uint64_t size_bytes,
                                                                     const std::string& path) {
  const auto read = [&](uint64_t offset, size_t length) -> absl::StatusOr<std::string> {
    std::string bytes(length, '\0');
    H5M_ASSIGN_OR_RETURN(const size_t got, PreadUpTo(fd, offset, bytes.data(), length, path));
    bytes.resize(got);
    return bytes;
  };
  return FindSuperblockPatch(size_bytes, read);
}

absl::StatusOr<std::optional<SuperblockPatch>> CloseCopy(int fd, uint64_t size_bytes,
                                                         const std::string& path) {
  H5M_ASSIGN_OR_RETURN(std::optional<SuperblockPatch> patch,
                       FindSuperblockPatchOf(fd, size_bytes, path));
  if (patch) H5M_RETURN_IF_ERROR(PwriteAll(fd, patch->offset, patch->bytes, path));
  return patch;
}

}  // namespace h5mirror::tools
