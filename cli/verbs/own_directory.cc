#include "cli/verbs/own_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/statusor.h"
#include "base/errno_status.h"
#include "base/owned_fd.h"
#include "base/record_files.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(std::string_view what, const fs::path& path) {
  return ErrnoToStatus(errno, StrCat(what, " ", path.string()));
}

absl::Status Refused(const fs::path& path, std::string_view why) {
  return absl::FailedPreconditionError(StrCat(path.string(), " ", why));
}

// The directory at `path`, opened over no link of another user.
absl::StatusOr<OwnedFd> OpenOwn(const fs::path& path) {
  OwnedFd fd = OpenDirectoryOf(path / "file");
  if (fd.valid()) return fd;
  if (errno == ELOOP) return Refused(path, "is a link that another user has made");
  if (errno == ENOTDIR) return Refused(path, "is no directory");
  return Failed("open", path);
}

// `fd` may be an O_PATH one, which fchmod(2) does not take.
absl::Status TakeFromOthers(const OwnedFd& fd, mode_t mode, const fs::path& path) {
  const OwnedFd directory(openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return Failed("open", path);
  return fchmod(directory.get(), mode & 07755) == 0 ? absl::OkStatus()
                                                    : Failed("set the mode of", path);
}

}  // namespace

absl::Status MakeOwnDirectory(const fs::path& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Failed("make", path);
  H5M_ASSIGN_OR_RETURN(const OwnedFd fd, OpenOwn(path));
  struct stat found {};
  if (fstat(fd.get(), &found) != 0) return Failed("stat", path);
  if (found.st_uid != geteuid()) {
    return Refused(path, StrCat("is a directory of another user (", found.st_uid, ")"));
  }
  return (found.st_mode & 022) == 0 ? absl::OkStatus() : TakeFromOthers(fd, found.st_mode, path);
}

absl::Status CheckKeepsFiles(const fs::path& path) {
  H5M_ASSIGN_OR_RETURN(const OwnedFd fd, OpenOwn(path));
  struct stat found {};
  if (fstat(fd.get(), &found) != 0) return Failed("stat", path);
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return Refused(path, StrCat("is a directory of another user (", found.st_uid, ")"));
  }
  if ((found.st_mode & 02) == 0 || (found.st_mode & S_ISVTX) != 0) return absl::OkStatus();
  return Refused(path, "is a directory in which all may write, and that is not sticky");
}

absl::Status CheckOwnFile(const fs::path& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Failed("stat", path);
  }
  if (S_ISREG(found.st_mode) && found.st_uid == geteuid() && found.st_nlink == 1) {
    return absl::OkStatus();
  }
  return Refused(path, "is no plain file of yours, or one with another name");
}

}  // namespace h5mirror::tools
