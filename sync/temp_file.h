// A file that appears under its name only when it is complete.
#ifndef H5MIRROR_SYNC_TEMP_FILE_H_
#define H5MIRROR_SYNC_TEMP_FILE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/local_record.h"

namespace h5mirror::tools {

enum class Existing { kRefuse, kReplace };

// Lies beside its target until Commit(); destroyed before that, or when the program is ended
// by SIGINT, SIGTERM or SIGHUP, it is removed. One at a time in a process. Not thread-safe.
class TempFile {
 public:
  // Mode 0666 under the umask.
  static absl::StatusOr<TempFile> Create(const std::filesystem::path& target);
  TempFile(TempFile&& other) noexcept;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

  // Makes it look like an open file to others, as far as the user may.
  void CopyOwnerAndMode(int fd) const;

  // Syncs the file, renames it to the target and syncs the directory.
  // kAlreadyExists with Existing::kRefuse where the target has appeared meanwhile.
  absl::Status Commit(Existing existing);

  // The same, and HDF5's lock on the file until this is destroyed, so that nobody writes it before
  // its record says what it is. Returns what it is under its name.
  // kAborted: a program that heeds no locks has changed or replaced it already.
  absl::StatusOr<FileStat> CommitLocked(Existing existing);

 private:
  TempFile(int fd, std::string path, std::filesystem::path target)
      : fd_(fd), path_(std::move(path)), target_(std::move(target)) {}

  int fd_ = -1;
  std::string path_;  // empty once it has its name
  std::filesystem::path target_;
};

// Makes the names in `directory` durable.
absl::Status SyncDirectory(const std::filesystem::path& directory);

// The directory that holds `path`, "." for a bare name.
std::filesystem::path DirectoryOf(const std::filesystem::path& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_TEMP_FILE_H_
