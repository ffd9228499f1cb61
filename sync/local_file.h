// A local HDF5 file that no program writes while we look at it, and the identity of this process.
#ifndef H5MIRROR_SYNC_LOCAL_FILE_H_
#define H5MIRROR_SYNC_LOCAL_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/local_record.h"
#include "cli/process/io.h"
#include "h5mirror/v1/types.pb.h"
#include "sync/local_superblock.h"

namespace h5mirror::tools {

// HDF5's own file locks: a writer holds flock(LOCK_EX), a reader LOCK_SH.
enum class FileLock {
  kNone,       // keeps nobody out: CheckUnchanged() tells whether somebody wrote
  kShared,     // keeps writers out
  kExclusive,  // keeps everybody out
};

// Holds the lock as long as it lives. Not thread-safe.
class LocalFile {
 public:
  // Errors: kNotFound; kInvalidArgument not a regular file; kFailedPrecondition a program has
  //         it open, or it cannot be read. A filesystem without locks is taken as it is.
  static absl::StatusOr<LocalFile> Open(const std::filesystem::path& path, FileLock lock);

  int fd() const { return file_.get(); }
  const std::filesystem::path& path() const { return path_; }
  // At Open().
  const FileStat& stat() const { return stat_; }
  uint64_t size_bytes() const { return static_cast<uint64_t>(stat_.size_bytes); }
  uint32_t mode_bits() const { return mode_bits_; }
  Hdf5State LookAtHdf5() const { return tools::LookAtHdf5(fd(), size_bytes()); }

  // kAborted when the file has changed since Open(), or its name leads to another one.
  absl::Status CheckUnchanged() const;

 private:
  LocalFile(OwnedFd file, std::filesystem::path path) : file_(std::move(file)), path_(path) {}

  OwnedFd file_;
  std::filesystem::path path_;
  FileStat stat_;
  uint32_t mode_bits_ = 0;
};

// `error` of an open or a read of a local file, for its user. kPermissionDenied would tell of a
// right on the server, and kInternal of a fault of ours: both become kFailedPrecondition, with the
// way out.
absl::Status AsUnreadable(const std::filesystem::path& path, const absl::Status& error);

// This machine and the file's real path. The file need not exist, its directory must.
absl::StatusOr<v1::Origin> LocalOrigin(const std::filesystem::path& path);

// The same machine and path.
bool IsSameOrigin(const v1::Origin& a, const v1::Origin& b);

// This process, for versions that it makes.
v1::Writer LocalWriter();

v1::LocalStat ToProto(const FileStat& stat);
// Whether `a` is known, and the same.
bool IsSameStat(const v1::LocalStat& a, const FileStat& b);

// "HOST/absolute/path", the name that a file gets where nothing else is said; with `root` its
// path below that directory. kInvalidArgument where the file is not below it.
absl::StatusOr<std::string> DefaultName(const std::filesystem::path& path, const std::string& root);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_LOCAL_FILE_H_
