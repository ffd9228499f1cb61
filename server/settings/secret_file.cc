#include "server/settings/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kSizeMax = size_t{1} << 20;

absl::Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoToStatus(errno, StrCat("write ", path));
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return ErrnoToStatus(errno, StrCat("sync ", path));
  return absl::OkStatus();
}

absl::Status CheckIsSecret(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoToStatus(errno, StrCat("stat ", path.string()));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path.string(), " is no regular file"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(StrCat(
        path.string(), " belongs to another user: chown it to the one that h5mirrord runs as"));
  }
  if ((info.st_mode & 0077) != 0) {
    return absl::PermissionDeniedError(
        StrCat(path.string(), " can be read or written by others: chmod 600 ", path.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmall(int fd, const std::filesystem::path& path) {
  std::string content(kSizeMax + 1, '\0');
  size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = read(fd, content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, StrCat("read ", path.string()));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kSizeMax) {
    return absl::InvalidArgumentError(StrCat(path.string(), " has more than 1 MiB"));
  }
  content.resize(size);
  return content;
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, StrCat("open ", path.string()));
  const absl::Cleanup closer = [fd] { close(fd); };
  return ReadSmall(fd, path);
}

absl::StatusOr<std::string> ReadGuardedFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoToStatus(errno, StrCat("open ", path.string()));
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat info {};
  if (fstat(fd, &info) != 0) return ErrnoToStatus(errno, StrCat("stat ", path.string()));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path.string(), " is no regular file"));
  }
  const bool is_own = info.st_uid == 0 || info.st_uid == geteuid();
  if (!is_own || (info.st_mode & 0022) != 0) {
    return absl::PermissionDeniedError(
        StrCat(path.string(), " can be written by others: ", is_own ? "chmod go-w " : "chown root ",
               path.string()));
  }
  return ReadSmall(fd, path);
}

absl::StatusOr<std::string> ReadSecretFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // No wait for a FIFO.
  if (fd < 0) return ErrnoToStatus(errno, StrCat("open ", path.string()));
  const absl::Cleanup closer = [fd] { close(fd); };
  H5M_RETURN_IF_ERROR(CheckIsSecret(fd, path));
  H5M_ASSIGN_OR_RETURN(std::string content, ReadSmall(fd, path));
  while (content.ends_with('\n') || content.ends_with('\r')) content.pop_back();
  return content;
}

absl::Status CreateFile(const std::filesystem::path& path, std::string_view content,
                        unsigned mode_bits) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoToStatus(errno, StrCat("create ", path.string()));
  const absl::Cleanup closer = [fd] { close(fd); };
  if (fchmod(fd, mode_bits) != 0) return ErrnoToStatus(errno, StrCat("chmod ", path.string()));
  return WriteAll(fd, content, path.string());
}

absl::Status ReplaceSecretFile(const std::filesystem::path& path, std::string_view content) {
  std::string temporary = StrCat(path.string(), ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);  // Mode 0600.
  if (fd < 0) return ErrnoToStatus(errno, StrCat("create ", temporary));
  absl::Cleanup remover = [&] { unlink(temporary.c_str()); };
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat old {};
  struct stat made {};
  const bool is_there = stat(path.c_str(), &old) == 0 && fstat(fd, &made) == 0;
  const bool is_others = old.st_uid != made.st_uid || old.st_gid != made.st_gid;
  if (is_there && is_others && fchown(fd, old.st_uid, old.st_gid) != 0) {
    return ErrnoToStatus(errno, StrCat("keep the owner of ", path.string()));
  }
  H5M_RETURN_IF_ERROR(WriteAll(fd, content, temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoToStatus(errno, StrCat("rename to ", path.string()));
  }
  std::move(remover).Cancel();
  return absl::OkStatus();
}

}  // namespace h5mirror::server
