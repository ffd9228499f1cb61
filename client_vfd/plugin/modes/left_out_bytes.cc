#include "client_vfd/plugin/modes/left_out_bytes.h"

#include <cstring>

#include "client_vfd/plugin/host/reporter.h"

namespace h5mirror::vfd {

void LeftOutBytes::Tell() {
  if (is_told_) return;
  is_told_ = true;
  ReportLeftOut(host_, file_.log, file_.real_path, file_.why);
}

// HDF5 writes the superblock of a file that it only opened for writing, as it was. Large writes are
// data: a comparison would cost a read of everything.
bool LeftOutBytes::ChangesBytes(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                                const void* buffer) {
  constexpr size_t kCompareBytesMax = 64 << 10;
  if (size > kCompareBytesMax || addr + size > under_.Eof(type)) return true;
  std::string old(size, '\0');
  return under_.Read(type, dxpl, addr, size, old.data()) < 0 ||
         std::memcmp(old.data(), buffer, size) != 0;
}

bool LeftOutBytes::ChangesSize() const {
  return under_.Eoa(H5FD_MEM_DEFAULT) != under_.Eof(H5FD_MEM_DEFAULT);
}

herr_t LeftOutBytes::Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void* buffer) {
  if (!is_told_ && ChangesBytes(type, dxpl, addr, size, buffer)) Tell();
  return below_.Write(type, dxpl, addr, size, buffer);
}

herr_t LeftOutBytes::Truncate(hid_t dxpl, hbool_t closing) {
  if (!is_told_ && changes_ == Changes::kWritesAndTruncates && ChangesSize()) {
    try {
      Tell();
    } catch (...) {  // The file is truncated all the same.
    }
  }
  return below_.Truncate(dxpl, closing);
}

}  // namespace h5mirror::vfd
