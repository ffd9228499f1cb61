#include "swmr_agent/published_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/open_beneath.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/superblock_image.h"
#include "spdlog/spdlog.h"

namespace h5mirror::agent {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);
constexpr size_t kChangedMax = 1 << 16;
constexpr mode_t kModeBits = 0644;
constexpr mode_t kDirectoryModeBits = 0755;
constexpr int kTemporaryTries = 10;

bool IsZero(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }

absl::Status WriteAll(int fd, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, "write");
    }
    offset += static_cast<uint64_t>(done);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return absl::OkStatus();
}

// Makes `part` in the open directory `parent`, for everybody to read as the files are, under any
// umask is; opens it if it is there.
absl::StatusOr<OwnedFd> OpenOrMakeDirectory(int parent, const std::string& part) {
  const int flags = O_RDONLY | O_DIRECTORY;
  const bool is_new = mkdirat(parent, part.c_str(), kDirectoryModeBits) == 0;
  if (!is_new && errno != EEXIST) return ErrnoToStatus(errno, StrCat("make ", part));
  OwnedFd fd = OpenBeneath(parent, part, flags, 0);
  if (!fd.valid() && (errno == ELOOP || errno == ENOTDIR)) {
    return absl::FailedPreconditionError(
        StrCat(part, " is a symbolic link or no directory: remove it, or publish elsewhere"));
  }
  if (!fd.valid()) return ErrnoToStatus(errno, StrCat("open ", part));
  if (is_new && fchmod(fd.get(), kDirectoryModeBits) != 0) {
    return ErrnoToStatus(errno, StrCat("chmod ", part));
  }
  return fd;
}

// The directory that is published in, and those around it, which are the user's own choice.
absl::Status MakeDirectories(const std::filesystem::path& path) {
  if (path.empty() || access(path.c_str(), F_OK) == 0) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const OwnedFd around(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!around.valid()) return ErrnoToStatus(errno, StrCat("open ", parent.string()));
  return OpenOrMakeDirectory(around.get(), path.filename().string()).status();
}

// The directory of the file `name` below `root`, opened part by part over no symbolic link.
absl::StatusOr<OwnedFd> OpenDirectoryOf(const std::filesystem::path& root,
                                        const std::filesystem::path& name) {
  H5M_RETURN_IF_ERROR(MakeDirectories(root));
  OwnedFd directory(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return ErrnoToStatus(errno, StrCat("open ", root.string()));
  for (const std::filesystem::path& part : name.parent_path()) {
    H5M_ASSIGN_OR_RETURN(directory, OpenOrMakeDirectory(directory.get(), part.string()));
  }
  return directory;
}

// A new file that nobody else has put there; what a run before has left goes.
absl::StatusOr<OwnedFd> MakeTemporary(int directory, const std::string& file_name) {
  for (int attempt = 0;; ++attempt) {
    OwnedFd fd = OpenBeneath(directory, file_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd.valid()) return fd;
    if (errno != EEXIST || attempt == kTemporaryTries) break;
    if (unlinkat(directory, file_name.c_str(), 0) != 0 && errno != ENOENT) break;
  }
  return ErrnoToStatus(errno, StrCat("make ", file_name));
}

// Shares the blocks if the file system can, else copies all but holes.
absl::Status CopyFile(int from, int to, uint64_t size_bytes) {
  if (ioctl(to, FICLONE, from) == 0) return absl::OkStatus();
  if (ftruncate(to, static_cast<off_t>(size_bytes)) != 0) return ErrnoToStatus(errno, "truncate");
  const auto size = static_cast<off_t>(size_bytes);
  for (off_t at = 0; at < size;) {
    const off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return ErrnoToStatus(errno, "look for data");
    const off_t hole = std::min(lseek(from, data, SEEK_HOLE), size);
    for (loff_t in = data, out = data; in < hole;) {
      const ssize_t done = copy_file_range(from, &in, to, &out, static_cast<size_t>(hole - in), 0);
      if (done < 0) return ErrnoToStatus(errno, "copy");
      if (done == 0) return absl::AbortedError("it became shorter meanwhile");
    }
    at = hole;
  }
  return absl::OkStatus();
}

// As the readers of the plugin have it: as a file that was closed.
absl::Status CloseSuperblock(int fd, CutImage& image) {
  const uint64_t size = image.size_bytes();
  for (uint64_t offset = 0; offset < size; offset = offset == 0 ? 512 : 2 * offset) {
    std::string bytes;
    const auto take = [&](uint64_t, std::string_view data) {
      bytes.append(data);
      return absl::OkStatus();
    };
    H5M_RETURN_IF_ERROR(image.Read(offset, kSuperblockImageBytes, take));
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kNo) continue;
    return WriteAll(fd, offset, ClosedSuperblock(bytes, offset, size).value_or(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

PublishedFile::PublishedFile(const std::filesystem::path& directory, const std::string& name)
    : reader_(StrCat("publish ", name)),
      directory_(directory),
      name_(name),
      temporary_(StrCat(".", name_.filename().string(), ".h5m-part")) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-publish");
    Run();
  });
}

void PublishedFile::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void PublishedFile::OnCut(FollowedFile& file, const CutNews& news) {
  {
    absl::MutexLock lock(&source_mutex_);
    source_ = &file;
    static_cast<void>(file.Hold(news.cut.snapshot.cut(), reader_));
  }
  int64_t former = 0;
  {
    absl::MutexLock lock(&mutex_);
    Pending next{news.cut, news.whole, ExtentSet(kChangedMax)};
    for (const Extent& extent : news.changed) {
      if (extent.length > 0) next.changed.Add(extent);
    }
    if (pending_) {
      former = pending_->cut.snapshot.cut();
      next.whole = next.whole || pending_->whole;
      next.changed.AddAll(pending_->changed);
    }
    pending_ = std::move(next);
  }
  if (former != 0 && former != news.cut.snapshot.cut()) Release(former);
}

void PublishedFile::OnEnd(FollowedFile& file) {
  absl::MutexLock lock(&source_mutex_);
  if (source_ == &file) source_ = nullptr;  // Else another one has taken its place.
}

void PublishedFile::Release(int64_t cut) {
  absl::MutexLock lock(&source_mutex_);
  if (source_ != nullptr) static_cast<void>(source_->Close(cut, reader_));
}

void PublishedFile::Run() {
  const auto has_work = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopping_ || pending_.has_value();
  };
  absl::Status said;
  for (;;) {
    Pending work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) return;
      work = *std::exchange(pending_, std::nullopt);
    }
    const int64_t cut = work.cut.snapshot.cut();
    const absl::Status status = Write(work);
    if (status.ok()) {
      said = status;
      Release(cut);
      continue;
    }
    last_ = OwnedFd(-1);   // The next one is written whole.
    if (status != said) {  // Once, however often it is tried.
      spdlog::warn("{}: cut {} was not published: {}", (directory_ / name_).string(), cut,
                   ToStd(status.message()));
    }
    said = status;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRetry);
      if (stopping_) return;
      if (!pending_) {
        pending_ = std::move(work);
        continue;
      }
    }
    Release(cut);  // A newer one is written instead.
  }
}

absl::Status PublishedFile::Write(const Pending& pending) {
  H5M_ASSIGN_OR_RETURN(const OwnedFd directory, OpenDirectoryOf(directory_, name_));
  H5M_ASSIGN_OR_RETURN(OwnedFd fd, MakeTemporary(directory.get(), temporary_));
  absl::Cleanup remover = [&] { unlinkat(directory.get(), temporary_.c_str(), 0); };
  bool whole = pending.whole || !last_.valid();
  if (!whole) {
    whole = !CopyFile(last_.get(), fd.get(), written_bytes_).ok();
    if (whole && ftruncate(fd.get(), 0) != 0) return ErrnoToStatus(errno, "truncate");
  }
  H5M_RETURN_IF_ERROR(Fill(fd.get(), pending, whole));
  if (fchmod(fd.get(), kModeBits) != 0) return ErrnoToStatus(errno, "chmod");
  if (renameat(directory.get(), temporary_.c_str(), directory.get(), name_.filename().c_str()) !=
      0) {
    return ErrnoToStatus(errno, StrCat("rename ", temporary_));
  }
  std::move(remover).Cancel();
  last_ = std::move(fd);
  written_bytes_ = pending.cut.image->size_bytes();
  return absl::OkStatus();
}

absl::Status PublishedFile::Fill(int fd, const Pending& pending, bool whole) {
  CutImage& image = *pending.cut.image;
  const uint64_t size = image.size_bytes();
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return ErrnoToStatus(errno, "truncate");
  ExtentSet wanted;
  if (whole) {
    wanted.Add({0, size});
  } else {
    wanted.AddAll(pending.changed);
    if (size > written_bytes_) wanted.Add({written_bytes_, size - written_bytes_});
    wanted.TruncateTo(size);
  }
  for (const Extent& extent : wanted.ToVector()) {
    // Where nothing is yet zeros are a hole.
    const auto take = [&](uint64_t offset, std::string_view data) {
      if (whole && IsZero(data)) return absl::OkStatus();
      return WriteAll(fd, offset, data);
    };
    H5M_RETURN_IF_ERROR(image.Read(extent.offset, extent.length, take));
  }
  return CloseSuperblock(fd, image);
}

}  // namespace h5mirror::agent
