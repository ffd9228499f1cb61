// The mode of files read from a server: with mode=reader, and with mode=remote until the file is
// written.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_MODE_H_

#include <memory>
#include <utility>

#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/modes/reader_file.h"

namespace h5mirror::vfd {

class ReaderMode final : public DriverFile {
 public:
  ReaderMode(const HostLibrary& host, std::unique_ptr<ReaderFile> file, FileIdentity identity)
      : DriverFile(host, std::move(file), std::move(identity)) {}

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    return under().Read(type, dxpl, addr, size, buffer);
  }
  // Fails.
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
               const void* buffer) override {
    return under().Write(type, dxpl, addr, size, buffer);
  }
  herr_t Truncate(hid_t dxpl, hbool_t closing) override { return under().Truncate(dxpl, closing); }
  // H5Drefresh and H5Orefresh flush between the close of their object and its new open. So do
  // H5Dflush and H5Oflush; nothing else flushes a file that is open for reading.
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t type) const override { return under().Eof(type); }
  RootPtr LinkRoot() const override { return file().root(); }
  void Status(H5mStatus* status) const override;

 private:
  ReaderFile& file() const { return static_cast<ReaderFile&>(under()); }
};

// Of a file that is read with mode=reader.
FileIdentity ReaderIdentity(const ReaderFile& file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_MODE_H_
