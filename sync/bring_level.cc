#include "sync/bring_level.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/io.h"
#include "sync/compare.h"
#include "sync/download.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kCopyBytes = 1 << 20;

// Holes stay holes.
absl::Status CopyData(const LocalFile& file, const TempFile& fresh) {
  if (ioctl(fresh.fd(), FICLONE, file.fd()) == 0) return absl::OkStatus();
  // Sharing blocks may fail after some are shared.
  if (ftruncate(fresh.fd(), 0) != 0) return ErrnoToStatus(errno, StrCat("empty ", fresh.path()));
  std::string buffer(kCopyBytes, '\0');
  uint64_t next = 0;
  while (const std::optional<Extent> data = NextData(file.fd(), next, file.size_bytes())) {
    for (next = data->offset; next < data->end();) {
      const size_t wanted = std::min<uint64_t>(buffer.size(), data->end() - next);
      H5M_ASSIGN_OR_RETURN(const size_t got,
                           PreadUpTo(file.fd(), next, buffer.data(), wanted, file.path().string()));
      if (got == 0) return file.CheckUnchanged();  // It became shorter.
      H5M_RETURN_IF_ERROR(
          PwriteAll(fresh.fd(), next, std::string_view(buffer).substr(0, got), fresh.path()));
      next += got;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LevelResult> BringLevel(rpc::Client& client, const std::string& name,
                                       const v1::Version& version, const LocalFile& file,
                                       Progress& progress) {
  H5M_ASSIGN_OR_RETURN(TempFile created, TempFile::Create(file.path()));
  LevelResult result{.file = std::move(created), .stat = {}, .patch = {}};
  const TempFile& fresh = result.file;
  H5M_RETURN_IF_ERROR(CopyData(file, fresh));
  // Twice: what the local file has beyond the version's end is gone first, and the copy ends there.
  const auto size_bytes = static_cast<uint64_t>(version.size_bytes());
  for (const uint64_t size : {std::min(size_bytes, file.size_bytes()), size_bytes}) {
    if (ftruncate(fresh.fd(), static_cast<off_t>(size)) != 0) {
      return ErrnoToStatus(errno, StrCat("set the size of ", fresh.path()));
    }
  }
  LocalBlocks blocks(file.fd(), file.size_bytes(), file.path().string());
  Comparison comparison(client, name, version.version(), blocks, progress);
  H5M_RETURN_IF_ERROR(comparison.Coarse());
  H5M_RETURN_IF_ERROR(comparison.Fine([&](absl::Span<const Extent> differing) -> absl::Status {
    std::vector<Extent> wanted;
    for (const Extent extent : differing) {
      const uint64_t end = std::min(extent.end(), size_bytes);
      if (end > extent.offset) wanted.push_back({extent.offset, end - extent.offset});
    }
    return DownloadRanges(client, name, version.version(), wanted, progress,
                          [&](uint64_t offset, std::string_view data) {
                            result.received_bytes += data.size();
                            return PwriteAll(fresh.fd(), offset, data, fresh.path());
                          });
  }));
  result.differing_bytes = comparison.differing_bytes();
  result.digest_bytes = comparison.digest_bytes();
  H5M_ASSIGN_OR_RETURN(result.patch, CloseCopy(fresh.fd(), size_bytes, fresh.path()));
  H5M_RETURN_IF_ERROR(file.CheckUnchanged());
  fresh.CopyOwnerAndMode(file.fd());
  H5M_ASSIGN_OR_RETURN(result.stat, result.file.CommitLocked(Existing::kReplace));
  return result;
}

}  // namespace h5mirror::tools
