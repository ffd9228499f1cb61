// The file system for the store: everything below one root, and nothing else. All of the
// store's calls go through here, so that a twin (base/testing/fault_env.h) can fail the n-th of
// them and make the states that a power loss may leave.
#ifndef H5MIRROR_BASE_ENV_H_
#define H5MIRROR_BASE_ENV_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "base/file_access.h"
#include "base/local_record.h"

namespace h5mirror {

enum class EntryKind : uint8_t { kFile, kDirectory, kOther };

struct DirectoryEntry {
  std::string name;
  EntryKind kind = EntryKind::kFile;
};

// One open file. Thread-safe as far as the calls of the operating system are. Closed by the
// destructor. Errors as in base/errno_status.h; messages name the file.
class EnvFile {
 public:
  virtual ~EnvFile() = default;

  // Reads into `out`; the result is shorter than asked only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) = 0;
  // Writes the pieces one after the other from `offset`: all of them, or an error after which any
  // part of the range may hold new bytes. One system call where the kernel takes it.
  virtual absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) = 0;
  virtual absl::Status Truncate(uint64_t size_bytes) = 0;
  // fdatasync. After an error the state of the disk is unknown, and a repeat would say OK: the file
  // must be opened again and recovered. So an error is always kInternal, never that of a full disk,
  // which callers wait out.
  virtual absl::Status Sync() = 0;
  // Sync(), and the times of Stat() too, where Sync() may leave them to be found out later.
  virtual absl::Status SyncWithTimes() { return Sync(); }
  // For a file whose owner knows by itself where its bytes end: may give it `size_bytes` in
  // advance, with zeros at the end, where the next syncs are cheaper then. Never makes it smaller.
  // False: its size is what it was, as far as is known. No other call may change the size
  // meanwhile.
  virtual bool GrowAhead(uint64_t /*size_bytes*/) { return false; }
  // Lets the system begin to write `extent` to the disk, so that a later Sync() has less to wait
  // for. Promises nothing.
  virtual void StartWriteback(Extent) {}
  // Lets the system begin to read `extent` from the disk, all of it at once, so that ReadAt() waits
  // less. Promises nothing.
  virtual void StartReading(Extent) {}
  // Makes `extent` read as zeros, without changing the size; by a hole where the file system can.
  virtual absl::Status Zero(Extent extent) = 0;
  // The first range at or after `offset` that is not a hole; length 0 when there is none. File
  // systems without holes name everything.
  virtual absl::StatusOr<Extent> NextData(uint64_t offset) = 0;
  virtual absl::StatusOr<uint64_t> Size() = 0;
  virtual absl::StatusOr<FileStat> Stat() = 0;
  // The user id of the file's owner. kUnimplemented: unknown.
  virtual absl::StatusOr<uint32_t> Owner() {
    return absl::UnimplementedError("this file system knows no owners");
  }
  // `mode_bits` 0..0777; `group` -1: unchanged.
  virtual absl::Status SetMode(uint32_t mode_bits, int64_t group) = 0;
  // The rights of users to the file. kUnimplemented: unknown.
  virtual absl::StatusOr<FileAccess> Access() {
    return absl::UnimplementedError("this file system knows no access lists");
  }
  // All of it at once: a list that the file has, also one that its directory gave it, is replaced.
  // `group` as above. kUnimplemented: the file system has no lists, or this process cannot set this
  // one; mode and list are as before.
  virtual absl::Status SetAccess(const FileAccess& access, int64_t group) {
    if (access.named.empty()) return SetMode(access.mode_bits, group);
    return absl::UnimplementedError("this file system knows no access lists");
  }
  // Copies `length` bytes of `from` to the same place here, sharing blocks where the file system
  // can (copy_file_range).
  virtual absl::Status CopyFrom(EnvFile& from, Extent extent) = 0;
  // Takes the content of `from`, holes too, without a copy: the files share blocks until one of
  // them is written. After an error a part may be here. kUnimplemented: this file system cannot.
  virtual absl::Status ShareFrom(EnvFile&) {
    return absl::UnimplementedError("this file system cannot share blocks");
  }
};

inline absl::Status WriteAt(EnvFile& file, uint64_t offset, std::string_view bytes) {
  return file.WriteAt(offset, {&bytes, 1});
}

// Reads exactly `out.size()` bytes; bytes beyond the end of the file are zeros.
absl::Status ReadOrZeros(EnvFile& file, uint64_t offset, absl::Span<char> out);

enum class OpenKind : uint8_t {
  kRead,         // kNotFound where there is none
  kWrite,        // read and write; kNotFound where there is none
  kCreate,       // read and write; made where there is none
  kCreateFresh,  // read and write; made, or emptied
};

struct FileSync {
  enum class Kind : uint8_t { kData, kDataAndTimes };
  EnvFile* file = nullptr;  // of the tree that syncs it
  Kind kind = Kind::kData;

  absl::Status Run() const { return kind == Kind::kData ? file->Sync() : file->SyncWithTimes(); }
};

// The locks that a lock keeps out: all others, or exclusive ones.
enum class LockKind : uint8_t { kExclusive, kShared };

// Holds flock(2) on a file while it lives.
class EnvLock {
 public:
  virtual ~EnvLock() = default;
};

// The tree below one directory. Names are relative and '/' separated; "" is the root itself. No
// name can leave the root: symlinks are never followed (kInvalidArgument). Thread-safe.
class EnvTree {
 public:
  virtual ~EnvTree() = default;

  // `mode_bits` (0..0777, under no umask) is for a file that is made.
  virtual absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                        uint32_t mode_bits) = 0;
  // kAlreadyExists where there is one.
  virtual absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) = 0;
  // Replaces `to`, atomically.
  virtual absl::Status Rename(std::string_view from, std::string_view to) = 0;
  // kAlreadyExists where `to` is there.
  virtual absl::Status Link(std::string_view from, std::string_view to) = 0;
  virtual absl::Status Remove(std::string_view name) = 0;
  virtual absl::Status RemoveDirectory(std::string_view name) = 0;
  // fsync of a directory: the names in it survive power loss.
  virtual absl::Status SyncDirectory(std::string_view name) = 0;
  // All of them, in no order, and at once where that is faster. Errors: one of those of Sync(), and
  // then any of the files may be synced.
  virtual absl::Status SyncAll(absl::Span<const FileSync> files);
  // In no order.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) = 0;
  virtual absl::StatusOr<FileStat> Stat(std::string_view name) = 0;
  // Makes the file if there is none. kFailedPrecondition: another lock is in the way.
  virtual absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) = 0;
  virtual absl::StatusOr<uint64_t> FreeBytes() = 0;
  // Whether a new file here can take the content of `from`, a file of this tree, by
  // EnvFile::ShareFrom(). Tries it with a file without a name, and so leaves nothing. May cost what
  // ShareFrom() costs. kUnimplemented: it cannot be tried here.
  virtual absl::StatusOr<bool> CanShare(EnvFile& /*from*/) { return false; }
  // The size of the file system. kUnimplemented: unknown.
  virtual absl::StatusOr<uint64_t> TotalBytes() {
    return absl::UnimplementedError("the size of this file system is unknown");
  }

  // True: an entry of that name exists. An error: unknown.
  absl::StatusOr<bool> Exists(std::string_view name);
};

// Thread-safe.
class Env {
 public:
  virtual ~Env() = default;
  // The operating system's. Lives as long as the process.
  static Env& Posix();

  // kNotFound, kPermissionDenied; kInvalidArgument: it is no directory.
  virtual absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) = 0;
  // Time of day.
  virtual absl::Time Now() = 0;
  // The number of a group; kNotFound.
  virtual absl::StatusOr<int64_t> GroupNumber(const std::string& group) = 0;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_ENV_H_
