// A layer over a file that is opened for writing and not mirrored. At the first change it tells
// `h5mirror exec` and the log why.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LEFT_OUT_BYTES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LEFT_OUT_BYTES_H_

#include <string>
#include <utility>

#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

class LeftOutBytes final : public FileBytes {
 public:
  struct File {
    std::string real_path;
    std::string log;
    std::string why;
  };
  // kWrites: over a metadata buffer, which truncates as it puts.
  enum class Changes { kWrites, kWritesAndTruncates };

  // `host`, `under` and `below` must outlive it. `under` is the local file, whose bytes a write is
  // compared with.
  LeftOutBytes(const HostLibrary& host, File file, UnderFile& under, FileBytes& below,
               Changes changes)
      : host_(host), file_(std::move(file)), under_(under), below_(below), changes_(changes) {}

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    return below_.Read(type, dxpl, addr, size, buffer);
  }
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override { return below_.Flush(dxpl, closing); }
  haddr_t Eof(H5FD_mem_t type) const override { return below_.Eof(type); }

  // The file changes, or has changed. Tells once.
  void Tell();

 private:
  bool ChangesBytes(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  bool ChangesSize() const;

  const HostLibrary& host_;
  const File file_;
  UnderFile& under_;
  FileBytes& below_;
  const Changes changes_;
  bool is_told_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_LEFT_OUT_BYTES_H_
