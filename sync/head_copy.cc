#include "sync/head_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/crc32c.h"
#include "base/errno_status.h"
#include "base/extent_set.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/io.h"
#include "sync/download.h"

namespace h5mirror::tools {
namespace {

// Copied, then asked about. Its checksums are 64 KiB with pages of 4 KiB.
constexpr uint64_t kWindowBytes = uint64_t{64} << 20;
// Stays in the processor's cache between being read, summed and written.
constexpr uint64_t kBlockBytes = 256 << 10;

// Where a copy of the head is not the version: there it has zeros, or bytes that the server has.
struct Differences {
  ExtentSet missing, zeros;
};

// The head that holds a version, and the version.
struct Source {
  rpc::Client& client;
  std::string name;
  v1::Version version;
  uint32_t page_size_bytes;
  OwnedFd head;
  std::string head_path;

  uint64_t size_bytes() const { return static_cast<uint64_t>(version.size_bytes()); }
};

absl::StatusOr<v1::Version> FindVersion(rpc::Client& client, const std::string& name,
                                        int64_t version) {
  v1::GetVersionRequest request;
  request.set_name(name);
  request.set_version(version);
  return client.GetVersion(request);
}

absl::StatusOr<v1::FileStatus> FindFile(rpc::Client& client, const std::string& name) {
  v1::GetFileRequest request;
  request.set_name(name);
  return client.GetFile(request, absl::Seconds(30));
}

bool IsPageSize(uint32_t bytes) {
  return bytes >= 512 && bytes <= 65536 && (bytes & (bytes - 1)) == 0;
}

// Unset: it has to come from the server, which also says what is wrong with the request.
std::optional<Source> FindSource(rpc::Client& client, const std::string& name, int64_t number) {
  if (!client.options().loopback) return std::nullopt;
  const absl::StatusOr<v1::GetServerResponse> server = client.GetServer();
  if (!server.ok()) return std::nullopt;
  const absl::StatusOr<v1::Version> found = FindVersion(client, name, number);
  if (!found.ok()) return std::nullopt;
  const absl::StatusOr<v1::FileStatus> file = FindFile(client, name);
  if (!file.ok() || file->generation() != found->generation() ||
      file->applied_cut() < found->cut() || found->size_bytes() < 0 ||
      !IsPageSize(file->page_size_bytes())) {
    return std::nullopt;
  }
  const std::string path = (std::filesystem::path(server->root()) / name).native();
  OwnedFd head(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat stat {};
  if (head.get() < 0 || fstat(head.get(), &stat) != 0 || !S_ISREG(stat.st_mode)) {
    return std::nullopt;
  }
  return Source{client, name, *found, file->page_size_bytes(), std::move(head), path};
}

// One window of the copy at a time.
class HeadCopy {
 public:
  HeadCopy(const Source& source, Progress& progress, int out, const std::string& out_path)
      : source_(source),
        progress_(progress),
        out_(out),
        out_path_(out_path),
        page_(source.page_size_bytes),
        zero_page_crc_(Crc32c(std::string(page_, '\0'))),
        is_clone_(ioctl(out, FICLONE, source.head.get()) == 0),
        buffer_(std::max<uint64_t>(kBlockBytes, page_), '\0') {}

  absl::Status Run() {
    // Sharing blocks may fail after some are shared.
    if (!is_clone_ && ftruncate(out_, 0) != 0) {
      return ErrnoToStatus(errno, StrCat("empty ", out_path_));
    }
    const uint64_t size = source_.size_bytes();
    progress_.set_total_bytes(size);
    Extent window;
    for (uint64_t begin = 0; begin < size; begin = window.end()) {
      window = NextWindow(begin);
      H5M_RETURN_IF_ERROR(head_is_worth_it_ ? CopyWindow(window) : Fetch(window));
      // A hint: the disk writes this window while the next one is copied, and the caller's sync
      // finds it done. It leaves errors for that one to tell.
      static_cast<void>(sync_file_range(out_, static_cast<off_t>(window.offset),
                                        static_cast<off_t>(window.length), SYNC_FILE_RANGE_WRITE));
      progress_.Update(window.end());
    }
    if (ftruncate(out_, source_.version.size_bytes()) == 0) return absl::OkStatus();
    return ErrnoToStatus(errno, StrCat("set the size of ", out_path_));
  }

 private:
  uint64_t PagesOf(uint64_t bytes) const { return (bytes + page_ - 1) / page_; }

  // Where the head's bytes are read.
  int from() const { return is_clone_ ? out_ : source_.head.get(); }

  // A long hole is one window, however long.
  Extent NextWindow(uint64_t begin) const {
    const uint64_t size = source_.size_bytes();
    const std::optional<Extent> data = NextData(from(), begin, size);
    const uint64_t hole_end = data ? data->offset / page_ * page_ : size;
    if (hole_end > begin + kWindowBytes) return {begin, hole_end - begin};
    return {begin, std::min(kWindowBytes, size - begin)};
  }

  absl::Status CopyWindow(Extent window) {
    H5M_RETURN_IF_ERROR(CopyHead(window));
    H5M_ASSIGN_OR_RETURN(const Differences found, FindDifferences(window));
    // If a file is rewritten all the time, its head has almost nothing of an old version.
    head_is_worth_it_ = found.missing.byte_count() <= window.length / 2;
    if (!head_is_worth_it_) return Fetch(window);
    for (const Extent& range : found.zeros.ToVector()) H5M_RETURN_IF_ERROR(Clear(range));
    H5M_RETURN_IF_ERROR(DownloadRanges(source_.client, source_.name, source_.version.version(),
                                       found.missing.ToVector(), progress_,
                                       [&](uint64_t offset, std::string_view data) {
                                         return PwriteAll(out_, offset, data, out_path_);
                                       }));
    return absl::OkStatus();
  }

  // Copies what the head holds of `window`, and keeps the checksum of each of its pages. Where
  // blocks are shared the bytes are only read.
  absl::Status CopyHead(Extent window) {
    crcs_.clear();
    if (window.length > kWindowBytes) return absl::OkStatus();
    uint64_t offset = window.offset;
    while (const std::optional<Extent> data = NextData(from(), offset, window.end())) {
      crcs_.resize(PagesOf(window.length), zero_page_crc_);
      const uint64_t end = std::min(data->end(), window.end());
      for (offset = data->offset / page_ * page_; offset < end; offset += buffer_.size()) {
        H5M_RETURN_IF_ERROR(CopyBlock(window, offset, end));
      }
      offset = PagesOf(end) * page_;
    }
    return absl::OkStatus();
  }

  absl::Status CopyBlock(Extent window, uint64_t offset, uint64_t end) {
    const uint64_t pages = PagesOf(std::min<uint64_t>(buffer_.size(), end - offset));
    const std::string_view block(buffer_.data(), pages * page_);
    H5M_ASSIGN_OR_RETURN(const size_t count, PreadUpTo(from(), offset, buffer_.data(), block.size(),
                                                       is_clone_ ? out_path_ : source_.head_path));
    std::memset(buffer_.data() + count, 0, block.size() - count);
    for (uint64_t page = 0; page < pages; ++page) {
      crcs_[(offset - window.offset) / page_ + page] = Crc32c(block.substr(page * page_, page_));
    }
    return is_clone_ ? absl::OkStatus() : PwriteAll(out_, offset, block, out_path_);
  }

  // Finds where the copy differs. It asks the server only after the copy: the server saves the old
  // bytes before it changes the head.
  absl::StatusOr<Differences> FindDifferences(Extent window) {
    v1::MapVersionRequest request;
    request.set_name(source_.name);
    request.set_version(source_.version.version());
    request.set_first_page(window.offset / page_);
    request.set_page_count(PagesOf(window.length));
    request.set_checksums(true);
    Differences found;
    uint64_t next = request.first_page();
    H5M_RETURN_IF_ERROR(
        source_.client.MapVersion(request, [&](const v1::MapVersionResponse& message) {
          for (const v1::PageRun& run : message.runs()) {
            H5M_RETURN_IF_ERROR(CheckRun(run, window, next));
            next = run.page() + run.page_count();
            Compare(run, window, &found);
          }
          return absl::OkStatus();
        }));
    if (next != request.first_page() + request.page_count()) return BadMap(next);
    found.missing.TruncateTo(window.end());
    return found;
  }

  absl::Status BadMap(uint64_t page) const {
    return absl::DataLossError(StrCat("map of ", source_.name, "@", source_.version.version(),
                                      ": the server's runs of pages do not go on at page ", page,
                                      "; check the server with h5mirror doctor"));
  }

  absl::Status CheckRun(const v1::PageRun& run, Extent window, uint64_t next) const {
    const uint64_t left = window.offset / page_ + PagesOf(window.length) - next;
    const auto sums = static_cast<uint64_t>(run.page_crc32c_size());
    const bool fits = run.page() == next && run.page_count() > 0 && run.page_count() <= left;
    const bool in_head = run.place() == v1::PAGE_PLACE_HEAD;
    // A server that gives no checksums is an older one: all comes from it.
    const bool sums_fit = sums == 0 || (in_head && sums == run.page_count());
    return fits && sums_fit ? absl::OkStatus() : BadMap(next);
  }

  void Compare(const v1::PageRun& run, Extent window, Differences* found) const {
    const bool in_head = run.place() == v1::PAGE_PLACE_HEAD;
    const bool is_zero = run.place() == v1::PAGE_PLACE_HOLE || run.place() == v1::PAGE_PLACE_ZEROS;
    if (is_zero && crcs_.empty()) return;
    for (uint64_t i = 0; i < run.page_count(); ++i) {
      const uint64_t page = run.page() + i;
      const uint32_t here = crcs_.empty() ? zero_page_crc_ : crcs_[page - window.offset / page_];
      const bool right = in_head && run.page_crc32c_size() > 0
                             ? here == run.page_crc32c(static_cast<int>(i))
                             : is_zero && here == zero_page_crc_;
      if (!right) (is_zero ? found->zeros : found->missing).Add({page * page_, page_});
    }
  }

  // Zeros are not sent.
  absl::Status Fetch(Extent range) {
    H5M_RETURN_IF_ERROR(Clear(range));
    return DownloadRange(source_.client, source_.name, source_.version.version(), range, progress_,
                         [&](uint64_t offset, std::string_view data) {
                           return PwriteAll(out_, offset, data, out_path_);
                         });
  }

  absl::Status Clear(Extent range) {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (fallocate(out_, mode, static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) ==
        0) {
      return absl::OkStatus();
    }
    std::memset(buffer_.data(), 0, buffer_.size());
    for (uint64_t at = range.offset; at < range.end(); at += buffer_.size()) {
      const uint64_t count = std::min<uint64_t>(buffer_.size(), range.end() - at);
      H5M_RETURN_IF_ERROR(PwriteAll(out_, at, {buffer_.data(), count}, out_path_));
    }
    return absl::OkStatus();
  }

  const Source& source_;
  Progress& progress_;
  const int out_;
  const std::string& out_path_;
  const uint64_t page_;
  const uint32_t zero_page_crc_;
  const bool is_clone_;
  std::string buffer_;
  bool head_is_worth_it_ = true;
  // Checksums of the window's pages in the copy; empty: the window is a hole.
  std::vector<uint32_t> crcs_;
};

}  // namespace

absl::StatusOr<std::optional<v1::Version>> CopyFromHead(rpc::Client& client,
                                                        const std::string& name, int64_t version,
                                                        Progress& progress, int fd,
                                                        const std::string& path) {
  const std::optional<Source> source = FindSource(client, name, version);
  if (!source) return std::nullopt;
  H5M_RETURN_IF_ERROR(HeadCopy(*source, progress, fd, path).Run());
  return source->version;
}

}  // namespace h5mirror::tools
