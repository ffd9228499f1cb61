#include "sync/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

// The path that the signal handler removes; empty: none.
char path_at_exit[4096];

void RemoveAndDie(int signal_number) {
  if (path_at_exit[0] != '\0') unlink(path_at_exit);
  raise(signal_number);  // SA_RESETHAND: the default action ends the program.
}

void ForgetPath() { path_at_exit[0] = '\0'; }

void RemoveOnSignal(const std::string& path) {
  if (path.size() >= sizeof(path_at_exit)) return;
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old = {};
    sigaction(signal_number, nullptr, &old);
    if (old.sa_handler != SIG_DFL) continue;  // Ignored under nohup, or ours already.
    struct sigaction action = {};
    action.sa_handler = RemoveAndDie;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal_number, &action, nullptr);
  }
  memcpy(path_at_exit, path.c_str(), path.size() + 1);
}

// Renames only onto a free name. Filesystems without RENAME_NOREPLACE have link(2).
int RenameToFreeName(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (link(from, to) != 0) return -1;
  return unlink(from);
}

}  // namespace

std::filesystem::path DirectoryOf(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

absl::Status SyncDirectory(const std::filesystem::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, StrCat("open ", directory.string()));
  const int rc = fsync(fd);
  const int error = errno;
  close(fd);
  // Some network filesystems cannot sync a directory and need not.
  if (rc != 0 && error != EINVAL) {
    return ErrnoToStatus(error, StrCat("sync ", directory.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<TempFile> TempFile::Create(const std::filesystem::path& target) {
  std::string path =
      (DirectoryOf(target) / StrCat(".", target.filename().string(), ".part-XXXXXX")).string();
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) {
    return ErrnoToStatus(
        errno, StrCat("create a file in ", DirectoryOf(target).string(), " for ", target.string()));
  }
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  RemoveOnSignal(path);
  return TempFile(fd, std::move(path), target);
}

TempFile::TempFile(TempFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::exchange(other.path_, "")),
      target_(std::move(other.target_)) {}

TempFile::~TempFile() {
  if (fd_ >= 0) close(fd_);
  if (path_.empty()) return;
  unlink(path_.c_str());
  ForgetPath();
}

void TempFile::CopyOwnerAndMode(int fd) const {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return;
  if (fchown(fd_, info.st_uid, info.st_gid) != 0) errno = 0;  // Only root can.
  fchmod(fd_, info.st_mode & 07777);
}

absl::Status TempFile::Commit(Existing existing) {
  if (fsync(fd_) != 0) return ErrnoToStatus(errno, StrCat("sync ", path_));
  const int rc = existing == Existing::kReplace ? rename(path_.c_str(), target_.c_str())
                                                : RenameToFreeName(path_.c_str(), target_.c_str());
  if (rc != 0) {
    return ErrnoToStatus(errno, StrCat("rename ", path_, " to ", target_.string()));
  }
  path_.clear();
  ForgetPath();
  return SyncDirectory(DirectoryOf(target_));
}

absl::StatusOr<FileStat> TempFile::CommitLocked(Existing existing) {
  // Nobody else knows it yet. A filesystem without locks is taken as it is.
  flock(fd_, LOCK_EX | LOCK_NB);
  // Data that is not written back yet may still change its times.
  if (fsync(fd_) != 0) return ErrnoToStatus(errno, StrCat("sync ", path_));
  H5M_ASSIGN_OR_RETURN(const FileStat before, StatDescriptor(fd_));
  H5M_RETURN_IF_ERROR(Commit(existing));
  H5M_ASSIGN_OR_RETURN(const FileStat after, StatDescriptor(fd_));
  H5M_ASSIGN_OR_RETURN(const FileStat named, StatFile(target_));
  // The rename itself changes the ctime.
  if (after.EqualsButName(before) && named == after) return after;
  return absl::AbortedError(StrCat(target_.string(),
                                   ": a program changed it just after it was replaced; close that, "
                                   "compare with h5mirror verify --against ",
                                   target_.string(), ", and try again"));
}

}  // namespace h5mirror::tools
