#include "client_vfd/session/file_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"

namespace h5mirror::vfd {
namespace {

class DescriptorReader final : public FileReader {
 public:
  // Takes the descriptor over.
  DescriptorReader(int fd, const DescriptorMark& mark)
      : fd_(fd), file_(IdentityOf(fd)), mark_(mark) {}
  ~DescriptorReader() override {
    if (IsOurs() && mark_.is_there()) close(fd_);
  }
  DescriptorReader(const DescriptorReader&) = delete;
  DescriptorReader& operator=(const DescriptorReader&) = delete;

  absl::Status Read(Extent extent, char* out) const override;
  absl::StatusOr<FileStat> Stat() const override;
  std::vector<Extent> DataExtents() const override;

 private:
  // The program may have closed it, and the number may be another file's.
  bool IsOurs() const { return IsStill(fd_, file_); }

  const int fd_;
  const FileIdentity file_;
  const DescriptorMark& mark_;
};

absl::Status Closed() {
  return absl::FailedPreconditionError(
      "the program has closed the descriptor by which the local file was read for the mirror");
}

absl::StatusOr<FileStat> DescriptorReader::Stat() const {
  absl::StatusOr<FileStat> stat = StatDescriptor(fd_);
  return stat.ok() && !IsOurs() ? Closed() : stat;
}

absl::Status DescriptorReader::Read(Extent extent, char* out) const {
  uint64_t done = 0;
  while (done < extent.length) {
    const ssize_t n =
        pread(fd_, out + done, extent.length - done, static_cast<off_t>(extent.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return ErrnoToStatus(errno, absl::StrCat("read the local file at ", extent.offset + done));
    if (n == 0) {
      std::memset(out + done, 0, extent.length - done);
      break;
    }
    done += static_cast<uint64_t>(n);
  }
  return IsOurs() ? absl::OkStatus() : Closed();  // Looked at after the read, which it is about.
}

std::vector<Extent> DescriptorReader::DataExtents() const {
  std::vector<Extent> extents;
  const off_t end = lseek(fd_, 0, SEEK_END);
  for (off_t at = 0; at < end;) {
    off_t data = lseek(fd_, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // Only a hole is left.
    if (data < 0) data = at;
    off_t hole = lseek(fd_, data, SEEK_HOLE);
    if (hole < 0) hole = end;
    if (hole > data)
      extents.push_back({static_cast<uint64_t>(data), static_cast<uint64_t>(hole - data)});
    at = hole;
  }
  if (!IsOurs()) extents.clear();
  return extents;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileReader>> FileReader::Open(int fd, const DescriptorMark& mark) {
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  const int own = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0) return ErrnoToStatus(errno, "open the local file again for the mirror");
  return std::make_unique<DescriptorReader>(own, mark);
}

}  // namespace h5mirror::vfd
