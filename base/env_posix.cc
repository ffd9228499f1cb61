#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/env.h"
#include "base/errno_status.h"
#include "base/machine.h"
#include "base/open_beneath.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

FileStat ToFileStat(const struct stat& st) {
  auto ns = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.inode = st.st_ino,
          .size_bytes = st.st_size,
          .mtime_ns = ns(st.st_mtim),
          .ctime_ns = ns(st.st_ctim)};
}

bool IsEmpty(int directory) {
  DIR* const dir = fdopendir(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (dir == nullptr) return false;
  int entries = 0;
  while (entries <= 2 && readdir(dir) != nullptr) ++entries;
  closedir(dir);
  return entries <= 2;  // "." and ".."
}

// Whether the directory is still as mkdirat() with 0700 has left it.
bool IsAsMade(int directory) {
  struct stat st {};
  return fstat(directory, &st) == 0 && (st.st_mode & 0077) == 0 && IsEmpty(directory);
}

// Sets the mode of a directory that was just made. If other users may write `parent`, they may by
// now have put a link under its name, or moved a private directory of ours there. So the mode is
// set by a descriptor, and only on a directory that is still empty. Returns as fchmod(2).
int SetDirectoryMode(int parent, const char* last, mode_t mode) {
  OwnedFd made = OpenBeneath(parent, last, O_RDONLY | O_DIRECTORY, 0);
  if (!made.valid() && errno == EACCES) {
    // A umask may take reading away even from the owner.
    const OwnedFd place = OpenBeneath(parent, last, O_PATH | O_DIRECTORY, 0);
    if (!place.valid()) return -1;
    if (chmod(StrCat("/proc/self/fd/", place.get()).c_str(), 0700) != 0) return -1;
    made = OpenBeneath(parent, last, O_RDONLY | O_DIRECTORY, 0);
  }
  if (!made.valid()) return -1;
  if (IsAsMade(made.get())) return fchmod(made.get(), mode);
  errno = ENOTEMPTY;
  return -1;
}

class PosixFile final : public EnvFile {
 public:
  PosixFile(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      ssize_t got = pread(fd_.get(), out.data() + done, out.size() - done, offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error("read");
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) override {
    iovec vectors[kVectorsMax];
    size_t next = 0, skip = 0;  // The first `skip` bytes of pieces[next] are written.
    while (true) {
      int count = 0;
      for (size_t i = next; i < pieces.size() && count < kVectorsMax; ++i) {
        size_t from = i == next ? skip : 0;
        if (pieces[i].size() == from) continue;
        vectors[count++] = {const_cast<char*>(pieces[i].data()) + from, pieces[i].size() - from};
      }
      if (count == 0) return absl::OkStatus();
      ssize_t wrote = pwritev(fd_.get(), vectors, count, offset);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return Error("write");
      offset += wrote;
      for (size_t left = wrote;
           left > 0 || (next < pieces.size() && skip == pieces[next].size());) {
        size_t here = std::min(left, pieces[next].size() - skip);
        left -= here;
        skip += here;
        if (skip == pieces[next].size()) ++next, skip = 0;
        if (next == pieces.size()) break;
      }
    }
  }

  absl::Status Truncate(uint64_t size_bytes) override {
    return Check(ftruncate(fd_.get(), static_cast<off_t>(size_bytes)), "truncate");
  }
  absl::Status Sync() override {
    if (fdatasync(fd_.get()) == 0) return absl::OkStatus();
    return absl::InternalError(Error("fdatasync").message());
  }

  void StartWriteback(Extent extent) override {
    (void)sync_file_range(fd_.get(), extent.offset, extent.length, SYNC_FILE_RANGE_WRITE);
  }

  void StartReading(Extent extent) override {
    if (extent.length == 0) return;  // A length of 0 would mean all bytes that follow.
    (void)posix_fadvise(fd_.get(), static_cast<off_t>(extent.offset),
                        static_cast<off_t>(extent.length), POSIX_FADV_WILLNEED);
  }

  absl::Status Zero(Extent extent) override {
    if (extent.length == 0) return absl::OkStatus();
    if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, extent.offset,
                  extent.length) == 0) {
      return absl::OkStatus();
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS) return Error("punch a hole in");
    return WriteZeros(extent);
  }

  absl::StatusOr<Extent> NextData(uint64_t offset) override {
    off_t data = lseek(fd_.get(), offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return Extent{offset, 0};
    if (data < 0) return Error("seek in");
    off_t hole = lseek(fd_.get(), data, SEEK_HOLE);
    if (hole < 0) return Error("seek in");
    return Extent{static_cast<uint64_t>(data), static_cast<uint64_t>(hole - data)};
  }

  absl::StatusOr<uint64_t> Size() override {
    H5M_ASSIGN_OR_RETURN(FileStat stat, Stat());
    return static_cast<uint64_t>(stat.size_bytes);
  }
  absl::StatusOr<FileStat> Stat() override {
    struct stat st;
    if (fstat(fd_.get(), &st) != 0) return Error("stat");
    return ToFileStat(st);
  }
  absl::StatusOr<uint32_t> Owner() override {
    struct stat st;
    if (fstat(fd_.get(), &st) != 0) return Error("stat");
    return st.st_uid;
  }
  absl::Status SetMode(uint32_t mode_bits, int64_t group) override {
    H5M_RETURN_IF_ERROR(SetGroup(group));
    return Check(fchmod(fd_.get(), mode_bits & 0777), "set the mode of");
  }
  absl::StatusOr<FileAccess> Access() override {
    const auto list = ReadAccessList(fd_.get());
    if (!list.ok()) {
      return absl::Status(list.status().code(), StrCat(path_, ": ", list.status().message()));
    }
    if (list->has_value()) return **list;
    struct stat st;
    if (fstat(fd_.get(), &st) != 0) return Error("stat");
    return FileAccess{st.st_mode & 0777, {}};
  }
  absl::Status SetAccess(const FileAccess& access, int64_t group) override {
    if (access.named.empty()) {
      const bool is_gone =
          fremovexattr(fd_.get(), kAccessListName) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
      return is_gone ? SetMode(access.mode_bits, group) : Error("remove the access list of");
    }
    H5M_RETURN_IF_ERROR(SetGroup(group));
    const std::string bytes = EncodeAccessList(access);
    if (fsetxattr(fd_.get(), kAccessListName, bytes.data(), bytes.size(), 0) == 0) {
      return absl::OkStatus();
    }
    // EINVAL: such a user cannot exist here, for example if this user namespace does not map it.
    const bool cannot = errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM ||
                        errno == EACCES || errno == EINVAL || errno == E2BIG || errno == ERANGE;
    const absl::Status failed = Error("set the access list of");
    return cannot ? absl::UnimplementedError(failed.message()) : failed;
  }

  absl::Status CopyFrom(EnvFile& from, Extent extent) override {
    auto& source = static_cast<PosixFile&>(from);
    off_t in = extent.offset, out = extent.offset;
    for (uint64_t left = extent.length; left > 0;) {
      ssize_t got = copy_file_range(source.fd_.get(), &in, fd_.get(), &out,
                                    std::min<uint64_t>(left, 1 << 30), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return CopyByReading(from, {extent.end() - left, left});
      if (got == 0) return absl::OkStatus();  // The source ends here.
      left -= got;
    }
    return absl::OkStatus();
  }

  absl::Status ShareFrom(EnvFile& from) override {
    if (ioctl(fd_.get(), FICLONE, static_cast<PosixFile&>(from).fd_.get()) == 0) {
      return absl::OkStatus();
    }
    // The code for "cannot" depends on the file system (ioctl_ficlonerange(2)). A code that says
    // more, such as a full disk, comes back when the bytes are copied instead.
    return absl::UnimplementedError(Error("share the blocks of another file in").message());
  }

 private:
  static constexpr int kVectorsMax = 256;  // IOV_MAX is 1024; more would only cost stack.

  absl::Status Error(const char* what) const {
    return ErrnoToStatus(errno, StrCat(what, " ", path_));
  }
  absl::Status Check(int result, const char* what) const {
    return result == 0 ? absl::OkStatus() : Error(what);
  }
  // Below 0: the group stays. If the file has the group already, makes no call: this process may
  // have no right to change groups.
  absl::Status SetGroup(int64_t group) {
    if (group < 0) return absl::OkStatus();
    struct stat st;
    if (fstat(fd_.get(), &st) != 0) return Error("stat");
    if (st.st_gid == static_cast<gid_t>(group)) return absl::OkStatus();
    return Check(fchown(fd_.get(), -1, static_cast<gid_t>(group)), "set the group of");
  }
  absl::Status WriteZeros(Extent extent) {
    static const std::string zeros(1 << 16, '\0');
    H5M_ASSIGN_OR_RETURN(uint64_t size, Size());
    uint64_t end = std::min(extent.end(), size);
    for (uint64_t at = extent.offset; at < end; at += zeros.size()) {
      std::string_view piece(zeros.data(), std::min<uint64_t>(zeros.size(), end - at));
      H5M_RETURN_IF_ERROR(WriteAt(at, {&piece, 1}));
    }
    return absl::OkStatus();
  }
  // copy_file_range refuses some pairs of file systems.
  absl::Status CopyByReading(EnvFile& from, Extent extent) {
    std::string buffer(1 << 20, '\0');
    for (uint64_t at = extent.offset; at < extent.end();) {
      size_t wanted = std::min<uint64_t>(buffer.size(), extent.end() - at);
      H5M_ASSIGN_OR_RETURN(size_t got, from.ReadAt(at, {buffer.data(), wanted}));
      if (got == 0) break;
      std::string_view piece(buffer.data(), got);
      H5M_RETURN_IF_ERROR(WriteAt(at, {&piece, 1}));
      at += got;
    }
    return absl::OkStatus();
  }

  OwnedFd fd_;
  std::string path_;
};

class PosixLock final : public EnvLock {
 public:
  explicit PosixLock(OwnedFd fd) : fd_(std::move(fd)) {}

 private:
  OwnedFd fd_;  // The flock ends with the last descriptor.
};

class PosixTree final : public EnvTree, public KnowsFileSizes {
 public:
  PosixTree(OwnedFd root, std::string path) : root_(std::move(root)), path_(std::move(path)) {}

  absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                uint32_t mode_bits) override {
    int flags = kind == OpenKind::kRead ? O_RDONLY : O_RDWR;
    bool create = kind == OpenKind::kCreate || kind == OpenKind::kCreateFresh;
    if (create) flags |= O_CREAT;
    if (kind == OpenKind::kCreateFresh) flags |= O_TRUNC;
    // O_NONBLOCK: the open of a fifo must not hang. It has no effect on a plain file.
    H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenAt2(name, flags | O_NONBLOCK, create ? mode_bits : 0));
    struct stat st;
    if (fstat(fd.get(), &st) != 0) return Error("stat", name);
    if (!S_ISREG(st.st_mode)) {
      return absl::InvalidArgumentError(StrCat(Path(name), " is not a plain file"));
    }
    return std::make_unique<PosixFile>(std::move(fd), Path(name));
  }

  absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) override {
    // Another thread may want to make the same directory, and then fill it. It waits here until the
    // mode of the directory is set, for which the directory must be empty.
    const absl::MutexLock lock(&making_);
    return InParent(name, "make directory", [&](int parent, const char* last) {
      // The caller has applied its own umask; the process's umask must not take more away.
      const int made = mkdirat(parent, last, 0700);
      return made != 0 ? made : SetDirectoryMode(parent, last, mode_bits & 0777);
    });
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return InParents(from, to, "rename", [](int a, const char* from, int b, const char* to) {
      return renameat(a, from, b, to);
    });
  }
  absl::Status Link(std::string_view from, std::string_view to) override {
    return InParents(from, to, "link", [](int a, const char* from, int b, const char* to) {
      return linkat(a, from, b, to, 0);
    });
  }
  absl::Status Remove(std::string_view name) override {
    return InParent(name, "remove",
                    [](int parent, const char* last) { return unlinkat(parent, last, 0); });
  }
  absl::Status RemoveDirectory(std::string_view name) override {
    return InParent(name, "remove directory", [](int parent, const char* last) {
      return unlinkat(parent, last, AT_REMOVEDIR);
    });
  }
  absl::Status SyncDirectory(std::string_view name) override {
    H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenAt2(name, O_RDONLY | O_DIRECTORY, 0));
    if (fsync(fd.get()) == 0) return absl::OkStatus();
    return absl::InternalError(Error("fsync", name).message());  // As EnvFile::Sync().
  }

  absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) override {
    H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenAt2(name, O_RDONLY | O_DIRECTORY, 0));
    DIR* dir = fdopendir(dup(fd.get()));
    if (dir == nullptr) return Error("list", name);
    std::vector<DirectoryEntry> entries;
    errno = 0;
    while (dirent* entry = readdir(dir)) {
      std::string_view entry_name = entry->d_name;
      if (entry_name == "." || entry_name == "..") continue;
      entries.push_back({std::string(entry_name), KindOf(fd.get(), *entry)});
      errno = 0;
    }
    int error = errno;
    closedir(dir);
    if (error != 0) return ErrnoToStatus(error, StrCat("list ", Path(name)));
    return entries;
  }

  absl::StatusOr<FileStat> Stat(std::string_view name) override {
    H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenAt2(name, O_PATH, 0));
    struct stat st;
    if (fstat(fd.get(), &st) != 0) return Error("stat", name);
    return ToFileStat(st);
  }

  absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) override {
    const int operation = (kind == LockKind::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    while (true) {
      H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenAt2(name, O_RDWR | O_CREAT, 0600));
      if (flock(fd.get(), operation) != 0) {
        if (errno != EWOULDBLOCK) return Error("lock", name);
        return absl::FailedPreconditionError(StrCat("another process holds ", Path(name)));
      }
      // The former holder may have removed the file. Then other processes lock another file.
      struct stat st;
      if (fstat(fd.get(), &st) != 0) return Error("stat", name);
      auto named = Stat(name);
      if (named.ok() && named->inode == st.st_ino)
        return std::make_unique<PosixLock>(std::move(fd));
      if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
    }
  }

  absl::StatusOr<uint64_t> FreeBytes() override {
    struct statvfs st;
    if (fstatvfs(root_.get(), &st) != 0) return Error("statvfs", "");
    return uint64_t{st.f_bavail} * st.f_frsize;
  }
  absl::StatusOr<bool> CanShare(EnvFile& from) override {
    OwnedFd fd(openat(root_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    // Not every file system has nameless files. NFS has none, but may share blocks.
    if (!fd.valid()) return absl::UnimplementedError(Error("make a file in", "").message());
    return PosixFile(std::move(fd), Path("")).ShareFrom(from).ok();
  }
  FileSizeMax FileSizes() override {
    FileSizeMax max;
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < INT64_MAX) {
      max.process_bytes = limit.rlim_cur;
    }
    const OwnedFd file(openat(root_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file.get() < 0) return max;
    // Beyond the process's limit even an attempt brings a signal.
    uint64_t too_large = max.process_bytes, largest = 0;
    while (too_large - largest > 1) {
      const uint64_t size = largest + (too_large - largest) / 2;
      if (ftruncate(file.get(), static_cast<off_t>(size)) == 0) {
        largest = size;
      } else if (errno == EFBIG || errno == EINVAL) {
        too_large = size;
      } else if (errno != EINTR) {
        return max;  // An error such as a full disk tells nothing.
      }
    }
    if (too_large < max.process_bytes) max.bytes = largest;
    return max;
  }
  absl::StatusOr<uint64_t> TotalBytes() override {
    struct statvfs st;
    if (fstatvfs(root_.get(), &st) != 0) return Error("statvfs", "");
    return uint64_t{st.f_blocks} * st.f_frsize;
  }

 private:
  std::string Path(std::string_view name) const {
    return name.empty() ? path_ : StrCat(path_, "/", name);
  }
  absl::Status Error(const char* what, std::string_view name) const {
    return ErrnoToStatus(errno, StrCat(what, " ", Path(name)));
  }

  absl::StatusOr<OwnedFd> OpenAt2(std::string_view name, int flags, uint32_t mode_bits) const {
    const std::string text(name.empty() ? "." : name);
    OwnedFd fd = OpenBeneath(root_.get(), text, flags, mode_bits);
    if (fd.valid()) return fd;
    if (errno == ELOOP || errno == EXDEV) {
      return absl::InvalidArgumentError(
          StrCat(Path(name), " leads over a symbolic link or out of the root, which is refused"));
    }
    if (errno == ENOTDIR) return absl::NotFoundError(StrCat(Path(name), ": no such file"));
    return Error("open", name);
  }

  template <typename Call>
  absl::Status InParent(std::string_view name, const char* what, Call call) const {
    auto [parent, last] = Split(name);
    H5M_ASSIGN_OR_RETURN(OwnedFd fd, OpenAt2(parent, O_PATH | O_DIRECTORY, 0));
    return call(fd.get(), last.c_str()) == 0 ? absl::OkStatus() : Error(what, name);
  }
  template <typename Call>
  absl::Status InParents(std::string_view from, std::string_view to, const char* what,
                         Call call) const {
    auto [from_parent, from_last] = Split(from);
    auto [to_parent, to_last] = Split(to);
    H5M_ASSIGN_OR_RETURN(OwnedFd a, OpenAt2(from_parent, O_PATH | O_DIRECTORY, 0));
    H5M_ASSIGN_OR_RETURN(OwnedFd b, OpenAt2(to_parent, O_PATH | O_DIRECTORY, 0));
    if (call(a.get(), from_last.c_str(), b.get(), to_last.c_str()) == 0) return absl::OkStatus();
    return ErrnoToStatus(errno, StrCat(what, " ", Path(from), " to ", Path(to)));
  }

  static std::pair<std::string_view, std::string> Split(std::string_view name) {
    size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) return {"", std::string(name)};
    return {name.substr(0, slash), std::string(name.substr(slash + 1))};
  }
  static EntryKind KindOf(int directory, const dirent& entry) {
    if (entry.d_type == DT_REG) return EntryKind::kFile;
    if (entry.d_type == DT_DIR) return EntryKind::kDirectory;
    struct stat st;
    if (entry.d_type != DT_UNKNOWN ||
        fstatat(directory, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return EntryKind::kOther;
    }
    return S_ISREG(st.st_mode)   ? EntryKind::kFile
           : S_ISDIR(st.st_mode) ? EntryKind::kDirectory
                                 : EntryKind::kOther;
  }

  OwnedFd root_;
  std::string path_;
  absl::Mutex making_;  // directories
};

class PosixEnv final : public Env, public KnowsBootTime {
 public:
  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override {
    int fd = open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoToStatus(errno, StrCat("open directory ", root.string()));
    return std::make_unique<PosixTree>(OwnedFd(fd), root.string());
  }
  absl::Time Now() override { return absl::Now(); }
  std::optional<BootTime> SinceBoot() override {
    timespec since{};
    if (boot_id_.empty() || clock_gettime(CLOCK_BOOTTIME, &since) != 0) return std::nullopt;
    return BootTime{boot_id_, absl::DurationFromTimespec(since)};
  }
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override {
    ::group entry{};
    ::group* found = nullptr;
    std::string buffer(1 << 14, '\0');
    getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (found == nullptr) return absl::NotFoundError(StrCat("no group named '", group, "'"));
    return static_cast<int64_t>(found->gr_gid);
  }

 private:
  static std::string ReadBootId() {
    const OwnedFd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    char text[64];
    const ssize_t got = file.get() < 0 ? -1 : read(file.get(), text, sizeof text);
    const std::string_view id(text, got < 0 ? 0 : static_cast<size_t>(got));
    return std::string(id.substr(0, id.find('\n')));
  }

  const std::string boot_id_ = ReadBootId();
};

}  // namespace

Env& Env::Posix() {
  static auto* env = new PosixEnv;  // Never destroyed: threads may outlive main().
  return *env;
}

}  // namespace h5mirror
