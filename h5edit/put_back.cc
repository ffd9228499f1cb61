#include "h5edit/put_back.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/backup.h"

namespace h5mirror::edit {
namespace {

namespace fs = std::filesystem;

// With no symlink in its directory.
fs::path Absolute(const fs::path& file) {
  std::error_code error;
  const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path whole = fs::canonical(directory, error);
  return (error ? fs::absolute(directory, error) : whole) / file.filename();
}

absl::Time TimeOf(const timespec& time) { return absl::TimeFromTimespec(time); }

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%S", time, absl::LocalTimeZone());
}

// How the names begin that what was replaced is kept under.
std::string KeptPrefix(const fs::path& real) {
  return StrCat(".", real.filename().string(), ".replaced-");
}

void CopyAttributes(int from, int to) {
  std::vector<char> names(static_cast<size_t>(std::max<ssize_t>(flistxattr(from, nullptr, 0), 0)));
  const ssize_t length = flistxattr(from, names.data(), names.size());
  for (ssize_t at = 0; at < length;) {
    const std::string name(names.data() + at);
    at += static_cast<ssize_t>(name.size()) + 1;
    std::vector<char> value(
        static_cast<size_t>(std::max<ssize_t>(fgetxattr(from, name.c_str(), nullptr, 0), 0)));
    const ssize_t got = fgetxattr(from, name.c_str(), value.data(), value.size());
    if (got >= 0) fsetxattr(to, name.c_str(), value.data(), static_cast<size_t>(got), 0);
  }
}

// A second name for `real`, which no other file has.
absl::StatusOr<fs::path> LinkAside(const fs::path& real) {
  const std::string first = StrCat(
      KeptPrefix(real), absl::FormatTime("%Y%m%dT%H%M%S", absl::Now(), absl::LocalTimeZone()));
  for (int number = 1;; ++number) {
    const fs::path kept = real.parent_path() / (number == 1 ? first : StrCat(first, "-", number));
    if (linkat(AT_FDCWD, real.c_str(), AT_FDCWD, kept.c_str(), 0) == 0) return kept;
    if (errno != EEXIST)
      return ErrnoToStatus(errno, StrCat("keep ", real.string(), " as ", kept.string()));
  }
}

absl::StatusOr<std::unique_ptr<EnvFile>> OpenCopy(const fs::path& copy) {
  H5M_ASSIGN_OR_RETURN(const auto tree, Env::Posix().OpenTree(copy.parent_path()));
  return tree->Open(copy.filename().string(), OpenKind::kRead, 0);
}

// The back-up under a name from which it can be moved over `real`: its own, or that of a copy where
// it is beside a link on another file system.
absl::StatusOr<fs::path> BringNear(const fs::path& copy, const fs::path& real) {
  H5M_ASSIGN_OR_RETURN(const auto file, OpenCopy(copy));
  struct stat there {
  }, here{};
  if (stat(copy.c_str(), &there) != 0 || stat(real.c_str(), &here) != 0)
    return ErrnoToStatus(errno, StrCat("stat ", copy.string()));
  if (there.st_dev == here.st_dev) {
    CopyMetadata(real, copy);
    H5M_RETURN_IF_ERROR(file->Sync());
    return copy;
  }
  const fs::path near = StrCat(BackupPathOf(real).string(), ".new");
  H5M_ASSIGN_OR_RETURN(const auto tree, Env::Posix().OpenTree(real.parent_path()));
  H5M_ASSIGN_OR_RETURN(const auto to, MakeUnfinished(*tree, near.filename().string()));
  absl::Status copied = CopyWhole(*file, *to);
  if (copied.ok()) {
    CopyMetadata(real, near);
    copied = to->Sync();
  }
  if (copied.ok()) return near;
  tree->Remove(near.filename().string()).IgnoreError();
  return copied;
}

}  // namespace

absl::StatusOr<fs::path> FindBackup(const fs::path& given, const fs::path& real) {
  fs::path found;
  struct stat first {
  }, st{};
  for (const fs::path& name : {given, real}) {
    const fs::path copy = BackupPathOf(name);
    if (lstat(copy.c_str(), &st) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) continue;
      return ErrnoToStatus(errno, StrCat("look for the back-up ", copy.string()));
    }
    if (S_ISLNK(st.st_mode)) {
      std::error_code error;
      const fs::path target = fs::read_symlink(copy, error);
      // A mark that leads nowhere was left by a run that was killed before or after its back-up.
      if ((stat(copy.c_str(), &st) != 0 && errno == ENOENT) ||
          (!found.empty() && target == Absolute(found)))
        continue;
      const std::string link = target.stem().string();  // ".NAME.bck"
      return absl::FailedPreconditionError(
          StrCat("the back-up ", target.string(), " of ", real.string(),
                 " exists already, beside a link that it was edited by: h5edit --recover ",
                 (target.parent_path() / (link.empty() ? link : link.substr(1))).string(),
                 " puts it back"));
    }
    if (found.empty()) {
      found = copy;
      first = st;
    } else if (first.st_dev != st.st_dev || first.st_ino != st.st_ino) {
      return absl::FailedPreconditionError(StrCat("there are two back-ups, ", found.string(),
                                                  " and ", copy.string(),
                                                  ": remove the one that is not to be put back"));
    }
  }
  return found;
}

void DropIdleMark(const fs::path& mark) {
  struct stat st {};
  const bool is_link = lstat(mark.c_str(), &st) == 0 && S_ISLNK(st.st_mode);
  if (is_link && stat(mark.c_str(), &st) != 0 && errno == ENOENT) unlink(mark.c_str());
}

absl::Status MarkBackup(const fs::path& copy, const fs::path& real) {
  const fs::path mark = BackupPathOf(real);
  const fs::path target = Absolute(copy);
  if (mark == target) return absl::OkStatus();
  DropIdleMark(mark);
  if (symlink(target.c_str(), mark.c_str()) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno,
                       StrCat("tell of the back-up ", target.string(), " in ", mark.string()));
}

void UnmarkBackup(const fs::path& copy, const fs::path& real) {
  std::error_code error;
  const fs::path mark = BackupPathOf(real);
  if (fs::read_symlink(mark, error) == Absolute(copy) && !error) unlink(mark.c_str());
}

void CopyMetadata(const fs::path& from, const fs::path& to) {
  const int in = open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int out = open(to.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  const absl::Cleanup close_both = [in, out] {
    if (in >= 0) close(in);
    if (out >= 0) close(out);
  };
  struct stat st {};
  if (in < 0 || out < 0 || fstat(in, &st) != 0) return;
  mode_t mode = st.st_mode & 0777;
  if (fchown(out, st.st_uid, st.st_gid) != 0 && fchown(out, static_cast<uid_t>(-1), st.st_gid) != 0)
    mode = (mode & 0707) | ((mode & (mode << 3)) & 070);
  else
    CopyAttributes(in, out);
  fchmod(out, mode);
}

std::string ChangedSince(const fs::path& copy, const fs::path& real) {
  struct stat was {
  }, is{};
  if (lstat(copy.c_str(), &was) != 0 || stat(real.c_str(), &is) != 0) return {};
  const absl::Time changed = TimeOf(is.st_ctim), left = TimeOf(was.st_mtim);
  if (changed <= left) return {};
  return StrCat("was changed at ", TimeText(changed), ", after h5edit was last at its back-up, at ",
                TimeText(left));
}

absl::Status MoveBackupBack(const fs::path& copy, const fs::path& real, fs::path* kept) {
  DropSecondName(real);
  struct stat st {};
  if (stat(real.c_str(), &st) != 0) return ErrnoToStatus(errno, StrCat("stat ", real.string()));
  if (st.st_nlink > 1) {
    return absl::FailedPreconditionError(
        StrCat(real.string(), " has ", st.st_nlink,
               " names (hard links), of which only this one would be put back: copy ",
               copy.string(), " over it"));
  }
  H5M_ASSIGN_OR_RETURN(const auto to, Env::Posix().OpenTree(real.parent_path()));
  const auto lock = to->Lock(real.filename().string(), LockKind::kExclusive);
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::UnavailableError(
        StrCat("cannot put ", real.string(), " back: another program has it open"));
  }
  H5M_ASSIGN_OR_RETURN(const fs::path near, BringNear(copy, real));
  // A second name first: exchanging the two would leave what is replaced under the back-up's name
  // to a kill between, and the next --recover would put that back.
  H5M_ASSIGN_OR_RETURN(*kept, LinkAside(real));
  if (rename(near.c_str(), real.c_str()) != 0) {
    const absl::Status why =
        ErrnoToStatus(errno, StrCat("move ", near.string(), " to ", real.string()));
    unlink(kept->c_str());
    return why;
  }
  H5M_RETURN_IF_ERROR(to->SyncDirectory(""));
  if (near != copy && unlink(copy.c_str()) != 0)
    return ErrnoToStatus(errno, StrCat("remove ", copy.string()));
  UnmarkBackup(copy, real);
  H5M_ASSIGN_OR_RETURN(const auto from, Env::Posix().OpenTree(copy.parent_path()));
  return from->SyncDirectory("");
}

void DropSecondName(const fs::path& real) {
  struct stat st {
  }, other{};
  if (stat(real.c_str(), &st) != 0 || st.st_nlink < 2) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(real.parent_path(), ignored)) {
    if (!entry.path().filename().string().starts_with(KeptPrefix(real))) continue;
    if (lstat(entry.path().c_str(), &other) == 0 && other.st_ino == st.st_ino &&
        other.st_dev == st.st_dev) {
      unlink(entry.path().c_str());
    }
  }
}

}  // namespace h5mirror::edit
