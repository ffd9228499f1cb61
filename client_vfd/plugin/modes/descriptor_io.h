// Reads and writes of whole ranges at a descriptor: a call that is cut short goes on.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_DESCRIPTOR_IO_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_DESCRIPTOR_IO_H_

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace h5mirror::vfd {

// The result of a transfer. Fewer bytes than asked for, and no error: the file ended.
struct Transferred {
  size_t bytes = 0;
  int error_number = 0;
};

// `part(done, size)` is as pread(2) and pwrite(2), of at most `size` bytes behind the first `done`.
template <typename Part>
Transferred TransferAll(size_t size, Part part) {
  constexpr size_t kPartBytesMax = 0x7ffff000;  // Linux transfers no more in one call.
  Transferred all;
  while (all.bytes < size) {
    const ssize_t n = part(all.bytes, std::min(size - all.bytes, kPartBytesMax));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) all.error_number = errno;
    if (n <= 0) break;
    all.bytes += static_cast<size_t>(n);
  }
  return all;
}

inline Transferred ReadAt(int fd, uint64_t offset, size_t size, char* out) {
  return TransferAll(size, [=](size_t done, size_t part) {
    return pread(fd, out + done, part, static_cast<off_t>(offset + done));
  });
}

inline Transferred WriteAt(int fd, uint64_t offset, size_t size, const char* bytes) {
  return TransferAll(size, [=](size_t done, size_t part) {
    return pwrite(fd, bytes + done, part, static_cast<off_t>(offset + done));
  });
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_DESCRIPTOR_IO_H_
