#include "base/record_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
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

// If root writes beside a user's file, that user's programs must be able to read it.
void LeaveToOwner(int fd, int directory) {
  struct stat owner {};
  if (geteuid() != 0 || fstat(directory, &owner) != 0 || owner.st_uid == 0) return;
  // If root may not change the owner, the file stays root's.
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

// The kernel's own limit (path_resolution(7)).
constexpr int kLinksMax = 40;

// A link is checked and read by the same descriptor: in its directory another user may meanwhile
// rename a different link over it. `path` is relative to the open `around`.
OwnedFd OpenDirectoryAt(int around, const std::filesystem::path& path, int links_left) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const std::filesystem::path name = path.has_filename() ? path.filename() : ".";
  const OwnedFd beside(openat(around, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!beside.valid()) return {};
  OwnedFd fd(openat(beside.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!fd.valid() || fstat(fd.get(), &found) != 0) return {};
  if (S_ISDIR(found.st_mode)) return fd;
  const bool is_link = S_ISLNK(found.st_mode);
  const bool is_ours = found.st_uid == geteuid() || found.st_uid == 0;
  if (!is_link || !is_ours || links_left == 0) {
    errno = is_link ? ELOOP : ENOTDIR;
    return {};
  }
  std::array<char, PATH_MAX> target;
  const ssize_t length = readlinkat(fd.get(), "", target.data(), target.size());
  if (length < 0) return {};
  const std::string_view text(target.data(), static_cast<size_t>(length));
  return OpenDirectoryAt(beside.get(), text, links_left - 1);
}

}  // namespace

absl::Status RecordFileError(std::string_view what, const std::filesystem::path& path) {
  return ErrnoToStatus(errno, StrCat(what, " ", path.native()));
}

OwnedFd OpenDirectoryOf(const std::filesystem::path& path) {
  return OpenDirectoryAt(AT_FDCWD, path.parent_path(), kLinksMax);
}

absl::StatusOr<std::string> ReadRecordFile(const std::filesystem::path& path, size_t bytes_max) {
  const OwnedFd directory = OpenDirectoryOf(path);
  if (!directory.valid()) return RecordFileError("open the directory of", path);
  const int fd = openat(directory.get(), path.filename().c_str(),
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
