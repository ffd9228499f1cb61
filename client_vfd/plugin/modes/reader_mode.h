// The mode of what is read from a server: with mode=reader, and with mode=remote until it is
// written.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_MODE_H_

#include <utility>

#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/modes/file_bytes.h"
#include "client_vfd/plugin/modes/reader_file.h"

namespace h5mirror::vfd {

class ReaderMode final : public DriverFile {
 public:
  // `under` is of ReaderClass().
  ReaderMode(const HostLibrary& host, H5FD_t* under, FileIdentity identity)
      : DriverFile(host, under, std::move(identity)), bytes_(under) {}

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    return bytes_.Read(type, dxpl, addr, size, buffer);
  }
  // Fails.
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
               const void* buffer) override {
    return bytes_.Write(type, dxpl, addr, size, buffer);
  }
  herr_t Truncate(hid_t dxpl, hbool_t closing) override { return bytes_.Truncate(dxpl, closing); }
  herr_t Flush(hid_t dxpl, hbool_t closing) override { return bytes_.Flush(dxpl, closing); }
  haddr_t Eof(H5FD_mem_t type) const override { return bytes_.Eof(type); }
  herr_t Close() override { return under()->cls->close(under()); }
  RootPtr LinkRoot() const override { return RootOf(under()); }
  void Status(H5mStatus* status) const override;

 private:
  UnderBytes bytes_;
};

// Of a file that is read with mode=reader.
FileIdentity ReaderIdentity(const H5FD_t* under);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_MODE_H_
