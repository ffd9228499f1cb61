#include "sync/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/who.h"

namespace h5mirror::tools {
namespace {

absl::StatusOr<std::filesystem::path> RealPath(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (error) {
    return AsUnreadable(path, ErrnoToStatus(error.value(), StrCat("resolve ", path.string())));
  }
  if (!real.is_absolute()) real = std::filesystem::absolute(real, error);
  return real;
}

// NFS grants an exclusive lock only on a descriptor that may write.
int OpenFor(const std::filesystem::path& path, FileLock lock) {
  if (lock == FileLock::kExclusive) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 || (errno != EACCES && errno != EROFS)) return fd;
  }
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

absl::Status AsUnreadable(const std::filesystem::path& path, const absl::Status& error) {
  const std::string start =
      StrCat(path.string(), ": the local file cannot be read: ", ToStd(error.message()));
  if (absl::IsPermissionDenied(error)) {
    return absl::FailedPreconditionError(StrCat(
        start, "; run this as the file's owner, or have its owner let you read it (namei -l ",
        path.string(), " shows the modes of its directories)"));
  }
  if (absl::IsInternal(error)) {
    return absl::FailedPreconditionError(
        StrCat(start, "; the system's log may say why (dmesg); h5mirror recover ", path.string(),
               " puts the last complete cut in its place"));
  }
  return error;
}

absl::StatusOr<LocalFile> LocalFile::Open(const std::filesystem::path& path, FileLock lock) {
  OwnedFd file(OpenFor(path, lock));
  if (file.get() < 0) {
    return AsUnreadable(path, ErrnoToStatus(errno, StrCat("open ", path.string())));
  }
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) {
    return ErrnoToStatus(errno, StrCat("stat ", path.string()));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path.string(), ": not a regular file"));
  }
  const int operation = lock == FileLock::kShared ? LOCK_SH : LOCK_EX;
  if (lock != FileLock::kNone && flock(file.get(), operation | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(StrCat(
        path.string(), ": a program has it open", lock == FileLock::kShared ? " for writing" : "",
        "; close it there first (fuser ", path.string(), " names it)"));
  }
  LocalFile result(std::move(file), path);
  H5M_ASSIGN_OR_RETURN(result.stat_, StatDescriptor(result.fd()));
  result.mode_bits_ = info.st_mode & 0777;
  return result;
}

absl::Status LocalFile::CheckUnchanged() const {
  H5M_ASSIGN_OR_RETURN(const FileStat open_now, StatDescriptor(fd()));
  H5M_ASSIGN_OR_RETURN(const FileStat named_now, StatFile(path_));
  if (open_now == stat_ && named_now == stat_) return absl::OkStatus();
  return absl::AbortedError(
      StrCat(path_.string(), ": changed while it was read; close its writer and try again"));
}

absl::StatusOr<v1::Origin> LocalOrigin(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path real, RealPath(path));
  v1::Origin origin;
  origin.set_machine_id(OwnMachineId());
  origin.set_host(OwnHost());
  origin.set_path(real.string());
  return origin;
}

bool IsSameOrigin(const v1::Origin& a, const v1::Origin& b) {
  return a.machine_id() == b.machine_id() && a.path() == b.path();
}

v1::Writer LocalWriter() {
  v1::Writer writer;
  writer.set_claimed_user(OwnUser());
  writer.set_host(OwnHost());
  writer.set_program("h5mirror");
  writer.set_pid(static_cast<uint32_t>(getpid()));
  return writer;
}

bool IsSameStat(const v1::LocalStat& a, const FileStat& b) {
  return a.inode() != 0 && a.inode() == b.inode && a.size_bytes() == b.size_bytes &&
         a.mtime_ns() == b.mtime_ns && a.ctime_ns() == b.ctime_ns;
}

v1::LocalStat ToProto(const FileStat& stat) {
  v1::LocalStat result;
  result.set_inode(stat.inode);
  result.set_size_bytes(stat.size_bytes);
  result.set_mtime_ns(stat.mtime_ns);
  result.set_ctime_ns(stat.ctime_ns);
  return result;
}

absl::StatusOr<std::string> DefaultName(const std::filesystem::path& path,
                                        const std::string& root) {
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path real, RealPath(path));
  if (root.empty()) return StrCat(OwnHost(), real.string());
  H5M_ASSIGN_OR_RETURN(const std::filesystem::path real_root, RealPath(root));
  const std::string below = real.lexically_relative(real_root).string();
  if (below.empty() || below == "." || below == ".." || absl::StartsWith(below, "../")) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": not below the root ", root, "; give its --name"));
  }
  return below;
}

}  // namespace h5mirror::tools
