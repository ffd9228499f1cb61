#include "h5perf_serial/posix_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::perf {

PosixFile::PosixFile(const std::string& path, int flags)
    : path_(path), fd_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}

PosixFile::~PosixFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status PosixFile::Error(const char* what) const {
  return ErrnoToStatus(errno, StrCat(what, " ", path_));
}

absl::Status PosixFile::Write(uint64_t offset, const unsigned char* data, size_t size) {
  H5M_RETURN_IF_ERROR(Seek(offset));
  while (size > 0) {
    const ssize_t written = write(fd_, data, size);
    if (written < 0 && errno != EINTR) return Error("write");
    if (written <= 0) continue;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status PosixFile::Read(uint64_t offset, unsigned char* data, size_t size) {
  H5M_RETURN_IF_ERROR(Seek(offset));
  while (size > 0) {
    const ssize_t got = read(fd_, data, size);
    if (got < 0 && errno != EINTR) return Error("read");
    if (got == 0) return absl::DataLossError(StrCat(path_, " ends before its data does"));
    if (got < 0) continue;
    data += got;
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status PosixFile::Sync() { return fsync(fd_) == 0 ? absl::OkStatus() : Error("fsync"); }

absl::Status PosixFile::Close() {
  const int fd = std::exchange(fd_, -1);
  return close(fd) == 0 ? absl::OkStatus() : Error("close");
}

absl::Status PosixFile::Seek(uint64_t offset) {
  return lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0 ? Error("seek in") : absl::OkStatus();
}

}  // namespace h5mirror::perf
