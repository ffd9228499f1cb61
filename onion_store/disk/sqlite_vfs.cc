#include "onion_store/disk/sqlite_vfs.h"

#include <atomic>
#include <cstring>
#include <new>

#include "base/strings.h"

namespace h5mirror::store {
namespace {

constexpr int kNameBytesMax = 8192;

// What SQLite allocates for us: a C struct whose first member it knows.
struct VfsFile {
  sqlite3_file base;
  EnvFile* file;
  EnvTree* tree;
  std::string* directory;  // synced once after the file was made; null when that is done
  bool is_log;
  sqlite3_int64 log_end;  // a log has so many bytes at least
};

// So that a small transaction, as a rule, makes no log larger. Frames end where one is not valid,
// as zeros are not.
constexpr sqlite3_int64 kLogGrowBytes = 64 << 10;

VfsFile& Self(sqlite3_file* file) { return *reinterpret_cast<VfsFile*>(file); }

int ToSqlite(const absl::Status& status, int io_error) {
  if (status.ok()) return SQLITE_OK;
  if (absl::IsResourceExhausted(status)) return SQLITE_FULL;
  sqlite3_log(io_error, "%s", std::string(status.message()).c_str());
  return io_error;
}

int Close(sqlite3_file* file) {
  delete Self(file).file;
  delete Self(file).directory;
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  absl::StatusOr<size_t> got =
      Self(file).file->ReadAt(offset, {static_cast<char*>(out), static_cast<size_t>(size)});
  if (!got.ok()) return SQLITE_IOERR_READ;
  if (*got == static_cast<size_t>(size)) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + *got, 0, size - *got);
  return SQLITE_IOERR_SHORT_READ;
}

void GrowAhead(VfsFile& log, sqlite3_int64 end) {
  if (end <= log.log_end) return;
  const sqlite3_int64 wanted = (end / kLogGrowBytes + 1) * kLogGrowBytes;
  log.log_end = log.file->GrowAhead(wanted) ? wanted : end;
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  if (Self(file).is_log) GrowAhead(Self(file), offset + size);
  std::string_view piece(static_cast<const char*>(data), size);
  return ToSqlite(WriteAt(*Self(file).file, offset, piece), SQLITE_IOERR_WRITE);
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  Self(file).log_end = 0;
  return ToSqlite(Self(file).file->Truncate(size), SQLITE_IOERR_TRUNCATE);
}

// Whatever it failed of: SQLITE_FULL tells that nothing but a write failed, which can be repeated.
int OfSync(const absl::Status& status, int io_error) {
  if (status.ok()) return SQLITE_OK;
  sqlite3_log(io_error, "%s", std::string(status.message()).c_str());
  return io_error;
}

int Sync(sqlite3_file* file, int) {
  VfsFile& self = Self(file);
  if (int result = OfSync(self.file->Sync(), SQLITE_IOERR_FSYNC); result != SQLITE_OK) {
    return result;
  }
  if (self.directory == nullptr) return SQLITE_OK;
  int result = OfSync(self.tree->SyncDirectory(*self.directory), SQLITE_IOERR_DIR_FSYNC);
  if (result == SQLITE_OK) {
    delete self.directory;
    self.directory = nullptr;
  }
  return result;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  absl::StatusOr<uint64_t> found = Self(file).file->Size();
  if (!found.ok()) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(*found);
  return SQLITE_OK;
}

int Lock(sqlite3_file*, int) { return SQLITE_OK; }
int CheckReservedLock(sqlite3_file*, int* held) {
  *held = 0;
  return SQLITE_OK;
}
int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return 4096; }
int Characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

// Version 1: no shared memory, which WAL in exclusive locking mode does not need.
constexpr sqlite3_io_methods kMethods = {1,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Lock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         Characteristics,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr};

EnvTree& TreeOf(sqlite3_vfs* vfs) { return *static_cast<EnvTree*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  VfsFile& self = Self(file);
  std::memset(static_cast<void*>(&self), 0, sizeof(self));
  if (name == nullptr) return SQLITE_CANTOPEN;  // Temporary files stay in memory (temp_store).
  EnvTree& tree = TreeOf(vfs);
  bool create = flags & SQLITE_OPEN_CREATE;
  auto opened = tree.Open(name, OpenKind::kWrite, 0);
  bool made = false;
  if (absl::IsNotFound(opened.status()) && create) {
    opened = tree.Open(name, OpenKind::kCreate, 0600);
    made = true;
  }
  if (!opened.ok()) {
    const bool is_refused = absl::IsPermissionDenied(opened.status());
    return ToSqlite(opened.status(), is_refused ? SQLITE_PERM : SQLITE_CANTOPEN);
  }
  self.file = opened->release();
  self.tree = &tree;
  self.is_log = (flags & SQLITE_OPEN_WAL) != 0;
  if (made) {
    std::string_view text = name;
    size_t slash = text.rfind('/');
    self.directory = new std::string(text.substr(0, slash == text.npos ? 0 : slash));
  }
  self.base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  EnvTree& tree = TreeOf(vfs);
  absl::Status removed = tree.Remove(name);
  if (absl::IsNotFound(removed)) return SQLITE_IOERR_DELETE_NOENT;
  if (!removed.ok()) return ToSqlite(removed, SQLITE_IOERR_DELETE);
  if (sync_directory == 0) return SQLITE_OK;
  std::string_view text = name;
  size_t slash = text.rfind('/');
  return OfSync(tree.SyncDirectory(text.substr(0, slash == text.npos ? 0 : slash)),
                SQLITE_IOERR_DIR_FSYNC);
}

int Access(sqlite3_vfs* vfs, const char* name, int, int* result) {
  auto exists = TreeOf(vfs).Exists(name);
  *result = exists.value_or(false) ? 1 : 0;
  return ToSqlite(exists.status(), SQLITE_IOERR_ACCESS);
}

int FullPathname(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs*, int size, char* out) {
  return sqlite3_vfs_find(nullptr)->xRandomness(sqlite3_vfs_find(nullptr), size, out);
}
int Sleep(sqlite3_vfs*, int microseconds) {
  return sqlite3_vfs_find(nullptr)->xSleep(sqlite3_vfs_find(nullptr), microseconds);
}
int CurrentTime(sqlite3_vfs*, double* now) {
  return sqlite3_vfs_find(nullptr)->xCurrentTime(sqlite3_vfs_find(nullptr), now);
}
int GetLastError(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

SqliteVfs::SqliteVfs(EnvTree& tree) : vfs_(std::make_unique<sqlite3_vfs>()) {
  static std::atomic<int> counter{0};
  name_ = StrCat("h5mirror-", counter++);
  sqlite3_initialize();
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(VfsFile);
  vfs_->mxPathname = kNameBytesMax;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = &tree;
  vfs_->xOpen = Open;
  vfs_->xDelete = Delete;
  vfs_->xAccess = Access;
  vfs_->xFullPathname = FullPathname;
  vfs_->xRandomness = Randomness;
  vfs_->xSleep = Sleep;
  vfs_->xCurrentTime = CurrentTime;
  vfs_->xGetLastError = GetLastError;
  sqlite3_vfs_register(vfs_.get(), 0);
}

SqliteVfs::~SqliteVfs() { sqlite3_vfs_unregister(vfs_.get()); }

}  // namespace h5mirror::store
