// The file system for the store: everything below one root, and nothing else. All file system calls
// of the store go through here. So a twin for tests (base/testing/fault_env.h) can fail the n-th
// call, and can make the states that a power loss may leave.
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

// One open file. As thread-safe as the calls of the operating system. Closed by the destructor.
// Errors as in base/errno_status.h; messages name the file.
class EnvFile {
 public:
  virtual ~EnvFile() = default;

  // Reads into `out`. Returns the bytes read: fewer than `out` holds only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) = 0;
  // Writes all pieces one after the other, from `offset` on. After an error any part of the range
  // may hold new bytes. One system call, if the kernel accepts that many pieces.
  virtual absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) = 0;
  virtual absl::Status Truncate(uint64_t size_bytes) = 0;
  // fdatasync. After an error the state of the disk is unknown, and a repeated call would return
  // OK. So the file must be opened again and recovered. An error is therefore always kInternal:
  // callers wait out a full disk, but must not wait here.
  virtual absl::Status Sync() = 0;
  // As Sync(), and also makes the times of Stat() exact, where Sync() may leave them unsettled.
  virtual absl::Status SyncWithTimes() { return Sync(); }
  // Only for a file whose owner knows where its bytes end. May grow the file to `size_bytes` in
  // advance, with zeros at the end, if that makes the next syncs cheaper. Never makes the file
  // smaller. False: the size has not changed, as far as is known. No other call may change the size
  // meanwhile.
  virtual bool GrowAhead(uint64_t /*size_bytes*/) { return false; }
  // Lets the system begin to write `extent` to the disk, so that a later Sync() has less to wait
  // for. Promises nothing.
  virtual void StartWriteback(Extent) {}
  // Lets the system begin to read `extent` from the disk, all of it at once, so that ReadAt() waits
  // less. Promises nothing.
  virtual void StartReading(Extent) {}
  // Makes `extent` read as zeros, without changing the size. Punches a hole if the file system can.
  virtual absl::Status Zero(Extent extent) = 0;
  // The first range at or after `offset` that is not a hole; length 0: there is none. A file system
  // without holes returns everything.
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
  // Sets all of it at once. Replaces a list that the file has, also one that it got from its
  // directory. `group` as above. kUnimplemented: the file system has no lists, or this process
  // cannot set this list; mode and list stay as they were.
  virtual absl::Status SetAccess(const FileAccess& access, int64_t group) {
    if (access.named.empty()) return SetMode(access.mode_bits, group);
    return absl::UnimplementedError("this file system knows no access lists");
  }
  // Copies the bytes `extent` of `from` to the same place here (copy_file_range). Shares blocks if
  // the file system can.
  virtual absl::Status CopyFrom(EnvFile& from, Extent extent) = 0;
  // Takes the content of `from`, holes included, without a copy: the files share blocks until one
  // of the files is written. After an error this file may have a part of the content.
  // kUnimplemented: this file system cannot share blocks.
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
  kRead,         // kNotFound: there is no file
  kWrite,        // read and write; kNotFound: there is no file
  kCreate,       // read and write; made if there is no file
  kCreateFresh,  // read and write; made if there is no file, else emptied
};

struct FileSync {
  enum class Kind : uint8_t { kData, kDataAndTimes };
  EnvFile* file = nullptr;  // a file of the tree that syncs it
  Kind kind = Kind::kData;

  absl::Status Run() const { return kind == Kind::kData ? file->Sync() : file->SyncWithTimes(); }
};

// kExclusive keeps out all other locks; kShared keeps out exclusive locks.
enum class LockKind : uint8_t { kExclusive, kShared };

// Holds flock(2) on a file while it lives.
class EnvLock {
 public:
  virtual ~EnvLock() = default;
};

// The tree below one directory. Names are relative and '/' separated; "" is the root itself. No
// name can lead out of the root: symlinks are never followed (kInvalidArgument). Thread-safe.
class EnvTree {
 public:
  virtual ~EnvTree() = default;

  // `mode_bits` (0..0777) is the mode of a file that this call makes. No umask applies.
  virtual absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                        uint32_t mode_bits) = 0;
  // kAlreadyExists: the name is taken.
  virtual absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) = 0;
  // Replaces `to`, atomically.
  virtual absl::Status Rename(std::string_view from, std::string_view to) = 0;
  // kAlreadyExists: `to` exists.
  virtual absl::Status Link(std::string_view from, std::string_view to) = 0;
  virtual absl::Status Remove(std::string_view name) = 0;
  virtual absl::Status RemoveDirectory(std::string_view name) = 0;
  // fsync of a directory: the names in it survive power loss.
  virtual absl::Status SyncDirectory(std::string_view name) = 0;
  // Syncs all files, in no order, and several at once if that is faster. Errors: those of Sync();
  // then any of the files may be synced or not.
  virtual absl::Status SyncAll(absl::Span<const FileSync> files);
  // In no order.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) = 0;
  virtual absl::StatusOr<FileStat> Stat(std::string_view name) = 0;
  // Makes the file if there is none. kFailedPrecondition: another lock keeps this one out.
  virtual absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) = 0;
  virtual absl::StatusOr<uint64_t> FreeBytes() = 0;
  // Whether a new file here can take the content of `from`, a file of this tree, by
  // EnvFile::ShareFrom(). Tries it with a nameless file, so it leaves nothing behind. May cost as
  // much as ShareFrom(). kUnimplemented: it cannot be tried here.
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
  // The operating system's file system. Lives as long as the process.
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
