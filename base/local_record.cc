#include "base/local_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/errno_status.h"
#include "base/local_record_json.h"
#include "base/record_files.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kRecordBytesMax = 1 << 20;
// A record is padded with spaces to a multiple of this, so that most updates do not change its
// size. It is one sector: after a power loss a record of the usual size is the old or the new one,
// not half of each.
constexpr size_t kRecordGrainBytes = 512;

enum class Fit { kSameSize, kAnySize };

// Overwrites the record with one write(2): a process that dies cannot tear it. kNotFound: there is
// no record; kOutOfRange: its size is not the wanted one.
absl::Status Overwrite(const std::filesystem::path& path, std::string text, Fit fit) {
  const OwnedFd directory = OpenDirectoryOf(path);
  if (!directory.valid()) return RecordFileError("open the directory of", path);
  const int fd = openat(directory.get(), path.filename().c_str(),
                        O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return RecordFileError("open", path);
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat now;
  if (fstat(fd, &now) != 0) return RecordFileError("stat", path);
  const auto old_bytes = static_cast<size_t>(now.st_size);
  if (!S_ISREG(now.st_mode) || (fit == Fit::kSameSize && old_bytes != text.size())) {
    return absl::OutOfRangeError(path.native());
  }
  if (text.size() < old_bytes) text.resize(old_bytes, ' ');
  const ssize_t written = pwrite(fd, text.data(), text.size(), 0);
  if (written == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  if (written >= 0) errno = EIO;
  return RecordFileError("write", path);
}

absl::StatusOr<std::string> Filled(const LocalRecord& record) {
  H5M_ASSIGN_OR_RETURN(std::string text, RecordToJson(record));
  text.resize((text.size() + kRecordGrainBytes - 1) / kRecordGrainBytes * kRecordGrainBytes, ' ');
  text.back() = '\n';
  return text;
}

absl::Status Replace(const std::filesystem::path& local_file, const std::filesystem::path& path,
                     std::string_view text) {
  const std::filesystem::path directory = RecordDirectory(local_file);
  if (mkdir(directory.c_str(), kBesideModeBits) != 0 && errno != EEXIST) {
    return RecordFileError("make directory", directory);
  }
  return ReplaceRecordFile(path, text);
}

// Held while a record is written, so that no other write comes between UpdateLocalRecord()'s read
// and its write. The lock is on the directory, because a rename may replace the record. After a
// short wait the write goes on without the lock: the holder may be stopped, or the file system may
// have no locks.
class RecordLock {
 public:
  explicit RecordLock(const RecordPlace& place) {
    const OwnedFd directory = OpenDirectoryOf(RecordPath(place));
    if (!directory.valid()) return;
    // An O_PATH descriptor takes no lock.
    fd_ = OwnedFd(openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int attempt = 0; fd_.valid() && attempt < kAttemptsMax; ++attempt) {
      if (flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  ~RecordLock() {
    // A child that was forked meanwhile shares the lock.
    if (fd_.valid()) flock(fd_.get(), LOCK_UN);
  }
  RecordLock(const RecordLock&) = delete;
  RecordLock& operator=(const RecordLock&) = delete;

 private:
  static constexpr int kAttemptsMax = 50;

  OwnedFd fd_;
};

FileStat FromSystem(const struct stat& stat) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return {.inode = stat.st_ino,
          .size_bytes = stat.st_size,
          .mtime_ns = stat.st_mtim.tv_sec * kNsPerSecond + stat.st_mtim.tv_nsec,
          .ctime_ns = stat.st_ctim.tv_sec * kNsPerSecond + stat.st_ctim.tv_nsec};
}

}  // namespace

std::filesystem::path RecordDirectory(const std::filesystem::path& local_file) {
  std::filesystem::path directory = local_file;
  directory += ".h5m";
  return directory;
}

std::filesystem::path RecordPath(const RecordPlace& place) {
  const std::string name =
      place.tag.empty() ? "client.json" : StrCat("client-", place.tag, ".json");
  return RecordDirectory(place.local_file) / name;
}

absl::StatusOr<LocalRecord> ReadLocalRecord(const RecordPlace& place) {
  const std::filesystem::path path = RecordPath(place);
  absl::StatusOr<LocalRecord> record;
  // A read beside another process's update may see half of each: look again.
  for (int attempt = 0; attempt < 3 && !record.ok(); ++attempt) {
    if (attempt > 0) absl::SleepFor(absl::Milliseconds(1));
    H5M_ASSIGN_OR_RETURN(const std::string text, ReadRecordFile(path, kRecordBytesMax));
    record = RecordFromJson(text);
  }
  if (record.ok()) return record;
  return absl::DataLossError(StrCat(
      path.native(), ": ", record.status().message(),
      "; the record is damaged. Removing it is safe: ", place.local_file.native(),
      " then counts as a file that was never mirrored, and `h5mirror push` or `h5mirror adopt` "
      "joins it to its mirror again"));
}

absl::Status WriteLocalRecord(const RecordPlace& place, const LocalRecord& record) {
  H5M_ASSIGN_OR_RETURN(const std::string text, Filled(record));
  const std::filesystem::path path = RecordPath(place);
  const RecordLock lock(place);
  const absl::Status written = Overwrite(path, text, Fit::kSameSize);
  if (!absl::IsNotFound(written) && !absl::IsOutOfRange(written)) return written;
  return Replace(place.local_file, path, text);
}

absl::StatusOr<bool> UpdateLocalRecord(const RecordPlace& place, const LocalRecord& record,
                                       absl::Time written_at) {
  H5M_ASSIGN_OR_RETURN(std::string text, Filled(record));
  const RecordLock lock(place);
  const absl::StatusOr<LocalRecord> now = ReadLocalRecord(place);
  if (absl::IsNotFound(now.status())) return false;
  H5M_RETURN_IF_ERROR(now.status());
  if (now->since != written_at) return false;
  const absl::Status written = Overwrite(RecordPath(place), std::move(text), Fit::kAnySize);
  if (absl::IsNotFound(written)) return false;
  H5M_RETURN_IF_ERROR(written);
  constexpr decltype(record.dirty_map_id) kNone{};
  if (now->dirty_map_id != kNone && record.dirty_map_id == kNone) RemoveDirtyMap(place);
  return true;
}

absl::StatusOr<FileStat> StatFile(const std::filesystem::path& path) {
  struct stat result;
  if (stat(path.c_str(), &result) != 0) return RecordFileError("stat", path);
  return FromSystem(result);
}

absl::StatusOr<FileStat> StatDescriptor(int fd) {
  struct stat result;
  if (fstat(fd, &result) != 0) return ErrnoToStatus(errno, StrCat("stat descriptor ", fd));
  return FromSystem(result);
}

}  // namespace h5mirror
