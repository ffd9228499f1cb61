#include "base/record_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

absl::Status WriteAll(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) return RecordFileError("write", path);
  }
  return absl::OkStatus();
}

// What root writes beside a user's file, that user's programs must be able to read.
void LeaveToOwner(int fd, const std::filesystem::path& directory) {
  struct stat owner {};
  if (geteuid() != 0 || stat(directory.c_str(), &owner) != 0 || owner.st_uid == 0) return;
  // Where root may not, it stays root's.
  if (fchown(fd, owner.st_uid, owner.st_gid) != 0) return;
}

// Makes a new file at `path`; on failure nothing of it is left.
absl::Status WriteNewFile(const std::filesystem::path& path, std::string_view bytes,
                          RecordSync sync) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return RecordFileError("create", path);
  LeaveToOwner(fd, path.parent_path());
  absl::Status status = WriteAll(fd, bytes, path);
  if (status.ok() && sync == RecordSync::kSynced && fsync(fd) != 0) {
    status = RecordFileError("sync", path);
  }
  // Network filesystems report a full disk here.
  if (close(fd) != 0) status.Update(RecordFileError("close", path));
  if (!status.ok()) unlink(path.c_str());
  return status;
}

absl::Status SyncDirectory(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return RecordFileError("open", path);
  const absl::Cleanup closer = [fd] { close(fd); };
  return fsync(fd) == 0 ? absl::OkStatus() : RecordFileError("sync", path);
}

}  // namespace

absl::Status RecordFileError(std::string_view what, const std::filesystem::path& path) {
  return ErrnoToStatus(errno, StrCat(what, " ", path.native()));
}

absl::StatusOr<std::string> ReadRecordFile(const std::filesystem::path& path, size_t bytes_max) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return RecordFileError("open", path);
  absl::Cleanup closer = [fd] { close(fd); };
  std::string bytes;
  char buffer[4096];
  while (bytes.size() <= bytes_max) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count == 0) return bytes;
    if (count > 0) bytes.append(buffer, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) return RecordFileError("read", path);
  }
  return bytes;
}

absl::Status ReplaceRecordFile(const std::filesystem::path& path, std::string_view bytes,
                               RecordSync sync) {
  // A name of its own, so that two processes never write into the same file.
  std::filesystem::path beside = path;
  beside += StrCat(".", HexOf(RandomBytes16()), ".new");
  H5M_RETURN_IF_ERROR(WriteNewFile(beside, bytes, sync));
  if (rename(beside.c_str(), path.c_str()) == 0) {
    return sync == RecordSync::kSynced ? SyncDirectory(path.parent_path()) : absl::OkStatus();
  }
  absl::Status status = RecordFileError("rename into place", path);
  unlink(beside.c_str());
  return status;
}

}  // namespace h5mirror
