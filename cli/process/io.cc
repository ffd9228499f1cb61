#include "cli/process/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {

absl::Status PwriteAll(int fd, uint64_t offset, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t n = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, StrCat("write ", path, " at ", offset));
    data.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> PreadUpTo(int fd, uint64_t offset, char* buffer, size_t size,
                                 const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd, buffer + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, StrCat("read ", path, " at ", offset + done));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

std::optional<Extent> NextData(int fd, uint64_t from, uint64_t size_bytes) {
  if (from >= size_bytes) return std::nullopt;
  const off_t data = lseek(fd, static_cast<off_t>(from), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return std::nullopt;
  if (data < 0) return Extent{from, size_bytes - from};
  if (static_cast<uint64_t>(data) >= size_bytes) return std::nullopt;
  const off_t hole = lseek(fd, data, SEEK_HOLE);
  const uint64_t end = hole < 0 ? size_bytes : std::min(static_cast<uint64_t>(hole), size_bytes);
  return Extent{static_cast<uint64_t>(data), end - static_cast<uint64_t>(data)};
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max) {
  OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ErrnoToStatus(errno, StrCat("open ", path));
  // read(2), not pread: the files in /proc and pipes have no offsets to trust.
  std::string text;
  char buffer[4096];
  while (text.size() < bytes_max) {
    const ssize_t n = read(file.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, StrCat("read ", path));
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace h5mirror::tools
