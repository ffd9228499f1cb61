// Local I/O for a host that exports none of HDF5's functions (a static HDF5 in an executable that
// was linked without -rdynamic). Semantics of sec2; errors can only be counted, not explained.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "client_vfd/plugin/modes/local_file.h"

namespace h5mirror::vfd {
namespace {

// Linux transfers at most this much in one call.
constexpr size_t kIoBytesMax = 0x7ffff000;

struct PosixFile {
  H5FD_t base;
  int fd;
  haddr_t eoa;
  haddr_t eof;
};

PosixFile* Of(H5FD_t* file) { return reinterpret_cast<PosixFile*>(file); }
const PosixFile* Of(const H5FD_t* file) { return reinterpret_cast<const PosixFile*>(file); }

herr_t Close(H5FD_t* file) {
  const int result = close(Of(file)->fd);
  delete Of(file);
  return result < 0 ? -1 : 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_POSIX_COMPAT_HANDLE |
           H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; }
haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eof; }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t addr) {
  Of(file)->eoa = addr;
  return 0;
}

herr_t GetHandle(H5FD_t* file, hid_t, void** handle) {
  *handle = &Of(file)->fd;
  return 0;
}

herr_t Read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t addr, size_t size, void* buffer) {
  auto* out = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t n =
        pread(Of(file)->fd, out, std::min(size, kIoBytesMax), static_cast<off_t>(addr));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) {  // Beyond the end of file, within the address space: zeros.
      std::memset(out, 0, size);
      return 0;
    }
    out += n;
    addr += static_cast<haddr_t>(n);
    size -= static_cast<size_t>(n);
  }
  return 0;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t addr, size_t size, const void* buffer) {
  const auto* in = static_cast<const char*>(buffer);
  while (size > 0) {
    const ssize_t n =
        pwrite(Of(file)->fd, in, std::min(size, kIoBytesMax), static_cast<off_t>(addr));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    in += n;
    addr += static_cast<haddr_t>(n);
    size -= static_cast<size_t>(n);
    Of(file)->eof = std::max(Of(file)->eof, addr);
  }
  return 0;
}

herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
  PosixFile* f = Of(file);
  if (f->eoa == f->eof) return 0;
  if (ftruncate(f->fd, static_cast<off_t>(f->eoa)) < 0) return -1;
  f->eof = f->eoa;
  return 0;
}

herr_t Flock(const PosixFile& file, int operation) {
  // A file system without locks is no error, as with HDF5's BEST_EFFORT.
  return flock(file.fd, operation) < 0 && errno != ENOSYS ? -1 : 0;
}

herr_t Lock(H5FD_t* file, hbool_t rw) {
  return Flock(*Of(file), (rw ? LOCK_EX : LOCK_SH) | LOCK_NB);
}
herr_t Unlock(H5FD_t* file) { return Flock(*Of(file), LOCK_UN); }

H5FD_class_t MakeClass() {
  H5FD_class_t made{};
  made.version = H5FD_CLASS_VERSION;
  made.name = "h5mirror_posix";
  made.close = Close;
  made.query = Query;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.get_handle = GetHandle;
  made.read = Read;
  made.write = Write;
  made.truncate = Truncate;
  made.lock = Lock;
  made.unlock = Unlock;
  return made;
}

int OpenFlags(unsigned flags) {
  int o_flags = (flags & H5F_ACC_RDWR) != 0 ? O_RDWR : O_RDONLY;
  if ((flags & H5F_ACC_TRUNC) != 0) o_flags |= O_TRUNC;
  if ((flags & H5F_ACC_CREAT) != 0) o_flags |= O_CREAT;
  if ((flags & H5F_ACC_EXCL) != 0) o_flags |= O_EXCL;
  return o_flags;
}

}  // namespace

const H5FD_class_t* PosixClass() {
  static const H5FD_class_t posix_class = MakeClass();
  return &posix_class;
}

H5FD_t* OpenPosix(const char* name, unsigned flags) {
  const int fd = open(name, OpenFlags(flags), 0666);
  if (fd < 0) return nullptr;
  struct stat status;
  auto* file = fstat(fd, &status) < 0 ? nullptr : new (std::nothrow) PosixFile{};
  if (file == nullptr) {
    close(fd);
    return nullptr;
  }
  file->base.cls = PosixClass();
  file->fd = fd;
  file->eof = static_cast<haddr_t>(status.st_size);
  return &file->base;
}

}  // namespace h5mirror::vfd
