#include "ceph/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <system_error>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "base/signal_block.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "ceph/file.h"

namespace h5mirror::ceph {
namespace {

constexpr unsigned kWanted = CEPH_STATX_BASIC_STATS;
// Others may make and remove a name between our two calls, though not for ever.
constexpr int kRacesMax = 100;
// At once, of one SyncAll().
constexpr size_t kSyncsMax = 8;

EntryKind KindOf(const dirent& entry) {
  return entry.d_type == DT_REG   ? EntryKind::kFile
         : entry.d_type == DT_DIR ? EntryKind::kDirectory
                                  : EntryKind::kOther;
}

bool MayCreate(OpenKind kind) {
  return kind == OpenKind::kCreate || kind == OpenKind::kCreateFresh;
}

// A descriptor of libcephfs with a flock, which goes with it.
class CephLock final : public EnvLock {
 public:
  CephLock(CephMount& mount, int fd) : mount_(mount), fd_(fd) {}
  ~CephLock() override {
    if (!mount_.fence().is_tripped()) ceph_close(mount_.get(), fd_);
  }
  CephLock(const CephLock&) = delete;

 private:
  CephMount& mount_;
  const int fd_;
};

// Two locks of one process keep each other out, as two open files of flock(2) do.
uint64_t NewLockOwner() {
  static std::atomic<uint64_t> owners{0};
  return ++owners;
}

// Starts threads so that with the caller `count` of them work; fewer if the system gives no more.
std::vector<std::thread> StartThreads(size_t count, const std::function<void()>& work) {
  const SignalBlock block;
  std::vector<std::thread> threads;
  threads.reserve(count);
  try {
    while (threads.size() + 1 < count) {
      threads.emplace_back(work);
      pthread_setname_np(threads.back().native_handle(), "h5m-ceph-sync");
    }
  } catch (const std::system_error&) {  // As where TasksMax of the unit is reached.
  }
  return threads;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EnvTree>> CephTree::Open(CephMount& mount, std::string directory,
                                                        std::string shown,
                                                        const FileSizeMax& file_sizes) {
  std::unique_ptr<CephTree> tree(
      new CephTree(mount, std::move(directory), std::move(shown), file_sizes));
  H5M_ASSIGN_OR_RETURN(const Found root, tree->Find(""));
  if (!S_ISDIR(root.stx.stx_mode)) {
    return absl::InvalidArgumentError(StrCat(tree->shown_, " is no directory"));
  }
  return tree;
}

std::string CephTree::Path(std::string_view name) const {
  return name.empty() ? shown_ : StrCat(shown_, "/", name);
}

absl::Status CephTree::Descend(std::string_view part, std::string_view name, Found* at) {
  const bool leads_out = part == "." || part == ".." || part.empty();
  if (leads_out || part == mount_.snapshot_name()) {
    return absl::InvalidArgumentError(
        StrCat(Path(name), " has the component \"", part, "\", which ",
               leads_out ? "is refused" : "is CephFS's name for snapshots"));
  }
  H5M_RETURN_IF_ERROR(mount_.Gate());
  Inode* next = nullptr;
  CephStat stx{};
  const int found = ceph_ll_lookup(mount_.get(), at->inode.get(), std::string(part).c_str(), &next,
                                   &stx, kWanted, AT_SYMLINK_NOFOLLOW, mount_.perms());
  H5M_RETURN_IF_ERROR(mount_.Check(found, "open", Path(name)));
  *at = Found{InodeRef(mount_, next), stx};
  if (!S_ISLNK(stx.stx_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(Path(name), " leads over a symbolic link, which is refused"));
}

absl::StatusOr<CephTree::Found> CephTree::Find(std::string_view name) {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  Inode* root = nullptr;
  H5M_RETURN_IF_ERROR(mount_.Check(ceph_ll_lookup_root(mount_.get(), &root), "open", Path("")));
  Found at{InodeRef(mount_, root), {}};
  H5M_RETURN_IF_ERROR(mount_.Check(
      ceph_ll_getattr(mount_.get(), root, &at.stx, kWanted, 0, mount_.perms()), "stat", Path("")));
  for (std::string_view rest : {std::string_view(directory_).substr(1), name}) {
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('/'), rest.size());
      H5M_RETURN_IF_ERROR(Descend(rest.substr(0, end), name, &at));
      const bool is_last = end == rest.size();
      rest.remove_prefix(is_last ? end : end + 1);
      if (!is_last && rest.empty()) H5M_RETURN_IF_ERROR(Descend("", name, &at));
    }
  }
  return at;
}

absl::StatusOr<CephTree::Found> CephTree::FindDirectory(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(Found found, Find(name));
  if (S_ISDIR(found.stx.stx_mode)) return found;
  return absl::NotFoundError(StrCat(Path(name), ": no such directory"));
}

absl::StatusOr<CephTree::Parent> CephTree::FindParent(std::string_view name) {
  const size_t slash = name.rfind('/');
  const std::string_view parent = slash == name.npos ? "" : name.substr(0, slash);
  H5M_ASSIGN_OR_RETURN(Found found, FindDirectory(parent));
  std::string last(slash == name.npos ? name : name.substr(slash + 1));
  if (last.empty() || last == "." || last == ".." || last == mount_.snapshot_name()) {
    return absl::InvalidArgumentError(StrCat(Path(name), ": a name must end in one of its own"));
  }
  return Parent{std::move(found), std::move(last)};
}

absl::StatusOr<std::unique_ptr<EnvFile>> CephTree::OpenThere(std::string_view name, OpenKind kind) {
  H5M_ASSIGN_OR_RETURN(Found found, Find(name));
  if (!S_ISREG(found.stx.stx_mode)) {
    return absl::InvalidArgumentError(StrCat(Path(name), " is not a plain file"));
  }
  Fh* handle = nullptr;
  const int opened =
      ceph_ll_open(mount_.get(), found.inode.get(), kind == OpenKind::kRead ? O_RDONLY : O_RDWR,
                   &handle, mount_.perms());
  H5M_RETURN_IF_ERROR(mount_.Check(opened, "open", Path(name)));
  auto file = std::make_unique<CephFile>(mount_, std::move(found.inode), found.stx.stx_ino, handle,
                                         Path(name));
  if (kind == OpenKind::kCreateFresh && found.stx.stx_size > 0) {
    H5M_RETURN_IF_ERROR(file->Truncate(0));
  }
  return file;
}

absl::StatusOr<std::unique_ptr<EnvFile>> CephTree::MakeFile(std::string_view name,
                                                            uint32_t mode_bits) {
  H5M_ASSIGN_OR_RETURN(const Parent parent, FindParent(name));
  Inode* inode = nullptr;
  Fh* handle = nullptr;
  CephStat stx{};
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const int made = ceph_ll_create(mount_.get(), parent.directory.inode.get(), parent.last.c_str(),
                                  mode_bits & 0777, O_RDWR | O_CREAT | O_EXCL, &inode, &handle,
                                  &stx, kWanted, 0, mount_.perms());
  H5M_RETURN_IF_ERROR(mount_.Check(made, "make", Path(name)));
  return std::make_unique<CephFile>(mount_, InodeRef(mount_, inode), stx.stx_ino, handle,
                                    Path(name));
}

absl::StatusOr<std::unique_ptr<EnvFile>> CephTree::Open(std::string_view name, OpenKind kind,
                                                        uint32_t mode_bits) {
  for (int race = 0;; ++race) {
    auto opened = OpenThere(name, kind);
    if (!MayCreate(kind) || !absl::IsNotFound(opened.status())) return opened;
    auto made = MakeFile(name, mode_bits);
    if (!absl::IsAlreadyExists(made.status()) || race == kRacesMax) return made;
  }
}

absl::Status CephTree::MakeDirectory(std::string_view name, uint32_t mode_bits) {
  if (name.empty()) return absl::AlreadyExistsError(StrCat(shown_, " exists"));
  H5M_ASSIGN_OR_RETURN(const Parent parent, FindParent(name));
  Inode* inode = nullptr;
  CephStat stx{};
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const int made = ceph_ll_mkdir(mount_.get(), parent.directory.inode.get(), parent.last.c_str(),
                                 mode_bits & 0777, &inode, &stx, kWanted, 0, mount_.perms());
  const InodeRef owner(mount_, inode);
  return mount_.Check(made, "make directory", Path(name));
}

absl::Status CephTree::Rename(std::string_view from, std::string_view to) {
  H5M_ASSIGN_OR_RETURN(const Parent a, FindParent(from));
  H5M_ASSIGN_OR_RETURN(const Parent b, FindParent(to));
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const int renamed = ceph_ll_rename(mount_.get(), a.directory.inode.get(), a.last.c_str(),
                                     b.directory.inode.get(), b.last.c_str(), mount_.perms());
  H5M_RETURN_IF_ERROR(mount_.Check(renamed, "rename", StrCat(Path(from), " to ", Path(to))));
  if (a.directory.stx.stx_ino == b.directory.stx.stx_ino) return absl::OkStatus();
  // CephFS notes the operation at `to` alone. A sync of `from` must cover it too.
  return SyncInode(b.directory.inode, to);
}

absl::Status CephTree::Link(std::string_view from, std::string_view to) {
  H5M_ASSIGN_OR_RETURN(const Found found, Find(from));
  H5M_ASSIGN_OR_RETURN(const Parent parent, FindParent(to));
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const int linked = ceph_ll_link(mount_.get(), found.inode.get(), parent.directory.inode.get(),
                                  parent.last.c_str(), mount_.perms());
  return mount_.Check(linked, "link", StrCat(Path(from), " to ", Path(to)));
}

absl::Status CephTree::Remove(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Parent parent, FindParent(name));
  H5M_RETURN_IF_ERROR(mount_.Gate());
  return mount_.Check(ceph_ll_unlink(mount_.get(), parent.directory.inode.get(),
                                     parent.last.c_str(), mount_.perms()),
                      "remove", Path(name));
}

absl::Status CephTree::RemoveDirectory(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Parent parent, FindParent(name));
  H5M_RETURN_IF_ERROR(mount_.Gate());
  return mount_.Check(ceph_ll_rmdir(mount_.get(), parent.directory.inode.get(), parent.last.c_str(),
                                    mount_.perms()),
                      "remove directory", Path(name));
}

absl::Status CephTree::SyncInode(const InodeRef& directory, std::string_view name) {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const int result = ceph_ll_sync_inode(mount_.get(), directory.get(), /*syncdataonly=*/0);
  const absl::Status synced = mount_.Check(result, "fsync", Path(name));
  if (!synced.ok()) return absl::InternalError(synced.message());  // As EnvFile::Sync().
  return mount_.Guard(directory.get(), Path(name));
}

absl::Status CephTree::SyncDirectory(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Found found, FindDirectory(name));
  return SyncInode(found.inode, name);
}

absl::Status CephTree::SyncAll(absl::Span<const FileSync> files) {
  if (files.size() == 1) return files[0].Run();
  std::vector<absl::Status> results(files.size());
  std::atomic<size_t> next{0};
  const auto sync = [&] {
    for (size_t i = next++; i < files.size(); i = next++) results[i] = files[i].Run();
  };
  std::vector<std::thread> threads = StartThreads(std::min(files.size(), kSyncsMax), sync);
  sync();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) H5M_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DirectoryEntry>> CephTree::List(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Found found, FindDirectory(name));
  H5M_RETURN_IF_ERROR(mount_.Gate());
  ceph_dir_result* directory = nullptr;
  H5M_RETURN_IF_ERROR(
      mount_.Check(ceph_ll_opendir(mount_.get(), found.inode.get(), &directory, mount_.perms()),
                   "list", Path(name)));
  const absl::Cleanup closer = [this, directory] {
    if (!mount_.fence().is_tripped()) ceph_ll_releasedir(mount_.get(), directory);
  };
  std::vector<DirectoryEntry> entries;
  while (true) {
    dirent entry{};
    H5M_RETURN_IF_ERROR(mount_.Gate());
    const int got = ceph_readdir_r(mount_.get(), directory, &entry);
    H5M_RETURN_IF_ERROR(mount_.Check(got, "list", Path(name)));
    if (got == 0) return entries;
    const std::string_view entry_name = entry.d_name;
    if (entry_name == "." || entry_name == "..") continue;
    entries.push_back({std::string(entry_name), KindOf(entry)});
  }
}

absl::StatusOr<FileStat> CephTree::Stat(std::string_view name) {
  H5M_ASSIGN_OR_RETURN(const Found found, Find(name));
  return ToFileStat(found.stx);
}

absl::StatusOr<std::unique_ptr<EnvLock>> CephTree::Lock(std::string_view name, LockKind kind) {
  // flock, as other clients know it: libcephfs has it for descriptors and paths alone.
  const std::string path = directory_ == "/" ? StrCat("/", name) : StrCat(directory_, "/", name);
  const int operation = (kind == LockKind::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  for (int race = 0;; ++race) {
    H5M_RETURN_IF_ERROR(Open(name, OpenKind::kCreate, 0600).status());
    H5M_ASSIGN_OR_RETURN(const Found before, Find(name));
    H5M_RETURN_IF_ERROR(mount_.Gate());
    const int fd = ceph_open(mount_.get(), path.c_str(), O_RDWR | O_NOFOLLOW, 0);
    if (fd == -ENOENT && race < kRacesMax) continue;
    H5M_RETURN_IF_ERROR(mount_.Check(fd, "open", Path(name)));
    auto lock = std::make_unique<CephLock>(mount_, fd);
    const int locked = ceph_flock(mount_.get(), fd, operation, NewLockOwner());
    if (locked == -EAGAIN) {
      return absl::FailedPreconditionError(StrCat("another process holds ", Path(name)));
    }
    H5M_RETURN_IF_ERROR(mount_.Check(locked, "lock", Path(name)));
    CephStat stx{};
    H5M_RETURN_IF_ERROR(
        mount_.Check(ceph_fstatx(mount_.get(), fd, &stx, kWanted, 0), "stat", Path(name)));
    // The former holder may have removed the file, or a link may have led the path elsewhere.
    const absl::StatusOr<Found> named = Find(name);
    if (named.ok() && named->stx.stx_ino == stx.stx_ino) return lock;
    if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
    if (race == kRacesMax) {
      return absl::UnavailableError(StrCat(Path(name), " is replaced again and again"));
    }
  }
}

absl::StatusOr<struct statvfs> CephTree::Space() {
  H5M_ASSIGN_OR_RETURN(const Found root, Find(""));
  struct statvfs space {};
  H5M_RETURN_IF_ERROR(
      mount_.Check(ceph_ll_statfs(mount_.get(), root.inode.get(), &space), "statvfs", Path("")));
  if (space.f_blocks == 0) {
    return absl::UnavailableError(
        StrCat(Path(""), ": the cluster does not know its free space; does a ceph-mgr run?"));
  }
  return space;
}

absl::StatusOr<uint64_t> CephTree::FreeBytes() {
  H5M_ASSIGN_OR_RETURN(const struct statvfs space, Space());
  return uint64_t{space.f_bavail} * space.f_frsize;
}

absl::StatusOr<uint64_t> CephTree::TotalBytes() {
  H5M_ASSIGN_OR_RETURN(const struct statvfs space, Space());
  return uint64_t{space.f_blocks} * space.f_frsize;
}

}  // namespace h5mirror::ceph
