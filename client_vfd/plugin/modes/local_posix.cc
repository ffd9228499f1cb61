// Local I/O for a host that exports none of HDF5's functions (a static HDF5 in an executable that
// was linked without -rdynamic). Semantics of sec2; errors can only be counted, not explained.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/owned_fd.h"
#include "client_vfd/plugin/modes/descriptor_io.h"
#include "client_vfd/plugin/modes/local_file.h"

namespace h5mirror::vfd {
namespace {

class PosixFile final : public UnderFile {
 public:
  // Takes `fd` over.
  PosixFile(int fd, haddr_t size_bytes) : UnderFile(kSec2Features), fd_(fd), eof_(size_bytes) {}
  ~PosixFile() override {
    if (fd_ >= 0) close(fd_);
  }

  herr_t Read(H5FD_mem_t, hid_t, haddr_t addr, size_t size, void* buffer) override {
    auto* const out = static_cast<char*>(buffer);
    const Transferred read = ReadAt(fd_, addr, size, out);
    if (read.error_number != 0) return -1;
    // Beyond the end of file, within the address space: zeros.
    std::memset(out + read.bytes, 0, size - read.bytes);
    return 0;
  }
  herr_t Write(H5FD_mem_t, hid_t, haddr_t addr, size_t size, const void* buffer) override {
    const Transferred written = WriteAt(fd_, addr, size, static_cast<const char*>(buffer));
    if (written.bytes > 0) eof_ = std::max<haddr_t>(eof_, addr + written.bytes);
    return written.bytes == size ? 0 : -1;
  }
  herr_t Truncate(hid_t, hbool_t) override {
    if (eoa() == eof_) return 0;
    if (ftruncate(fd_, static_cast<off_t>(eoa())) < 0) return -1;
    eof_ = eoa();
    return 0;
  }
  haddr_t Eof(H5FD_mem_t) const override { return eof_; }
  bool HasHandle() const override { return true; }
  herr_t Handle(hid_t, void** handle) override {
    *handle = &fd_;
    return 0;
  }
  herr_t Lock(hbool_t exclusive) override {
    return Flock((exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
  }
  void Unlock() override { Flock(LOCK_UN); }
  herr_t Close() override { return close(std::exchange(fd_, -1)) < 0 ? -1 : 0; }

 private:
  // A file system without locks is no error, as with HDF5's BEST_EFFORT.
  herr_t Flock(int operation) const {
    return flock(fd_, operation) < 0 && errno != ENOSYS ? -1 : 0;
  }

  int fd_;
  haddr_t eof_;
};

int OpenFlags(unsigned flags) {
  int o_flags = (flags & H5F_ACC_RDWR) != 0 ? O_RDWR : O_RDONLY;
  if ((flags & H5F_ACC_TRUNC) != 0) o_flags |= O_TRUNC;
  if ((flags & H5F_ACC_CREAT) != 0) o_flags |= O_CREAT;
  if ((flags & H5F_ACC_EXCL) != 0) o_flags |= O_EXCL;
  return o_flags;
}

}  // namespace

std::unique_ptr<UnderFile> OpenPosix(const char* name, unsigned flags) {
  OwnedFd fd(open(name, OpenFlags(flags), 0666));
  struct stat status;
  if (!fd.valid() || fstat(fd.get(), &status) < 0) return nullptr;
  return std::make_unique<PosixFile>(fd.Release(), static_cast<haddr_t>(status.st_size));
}

}  // namespace h5mirror::vfd
