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
void LeaveToOwner(int fd, int directory) {
  struct stat owner {};
  if (geteuid() != 0 || fstat(directory, &owner) != 0 || owner.st_uid == 0) return;
  // Where root may not, it stays root's.
  if (fchown(fd, owner.st_uid, owner.st_gid) != 0) return;
}

// Makes a new file at `path`, in the open `directory`; on failure nothing of it is left.
absl::Status WriteNewFile(int directory, const std::filesystem::path& path, std::string_view bytes,
                          RecordSync sync) {
  const std::string name = path.filename().native();
  const int fd =
      openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return RecordFileError("create", path);
  LeaveToOwner(fd, directory);
  absl::Status status = WriteAll(fd, bytes, path);
  if (status.ok() && sync == RecordSync::kSynced && fsync(fd) != 0) {
    status = RecordFileError("sync", path);
  }
  // Network filesystems report a full disk here.
  if (close(fd) != 0) status.Update(RecordFileError("close", path));
  if (!status.ok()) unlinkat(directory, name.c_str(), 0);
  return status;
}

absl::Status SyncDirectory(int directory, const std::filesystem::path& path) {
  const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return RecordFileError("open", path);
  const absl::Cleanup closer = [fd] { close(fd); };
  return fsync(fd) == 0 ? absl::OkStatus() : RecordFileError("sync", path);
}

}  // namespace

absl::Status RecordFileError(std::string_view what, const std::filesystem::path& path) {
  return ErrnoToStatus(errno, StrCat(what, " ", path.native()));
}

OwnedFd OpenDirectoryOf(const std::filesystem::path& path) {
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  OwnedFd fd(open(directory.c_str(), kFlags | O_NOFOLLOW));
  if (fd.valid() || (errno != ENOTDIR && errno != ELOOP)) return fd;
  struct stat link {};
  if (lstat(directory.c_str(), &link) != 0) return {};
  const bool is_ours = link.st_uid == geteuid() || link.st_uid == 0;
  if (S_ISLNK(link.st_mode) && is_ours) return OwnedFd(open(directory.c_str(), kFlags));
  errno = S_ISLNK(link.st_mode) ? ELOOP : ENOTDIR;
  return {};
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
  const OwnedFd directory = OpenDirectoryOf(path);
  if (!directory.valid()) return RecordFileError("open the directory of", path);
  H5M_RETURN_IF_ERROR(WriteNewFile(directory.get(), beside, bytes, sync));
  const std::string from = beside.filename().native(), to = path.filename().native();
  if (renameat(directory.get(), from.c_str(), directory.get(), to.c_str()) == 0) {
    return sync == RecordSync::kSynced ? SyncDirectory(directory.get(), path.parent_path())
                                       : absl::OkStatus();
  }
  absl::Status status = RecordFileError("rename into place", path);
  unlinkat(directory.get(), from.c_str(), 0);
  return status;
}

}  // namespace h5mirror
