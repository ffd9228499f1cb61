// The common part of the modes whose files can be written: layers of bytes, and state that HDF5
// leaves to a driver's `lock` callback where a file is written for SWMR (swmr.h).
//
//   read     the first one of an existing file looks for an SWMR writer; then the layers
//   write    a superblock with an SWMR writer's flag gets all of them; then the layers
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_WRITABLE_MODE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_WRITABLE_MODE_H_

#include <memory>
#include <utility>
#include <vector>

#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/modes/file_bytes.h"
#include "client_vfd/plugin/modes/first_read.h"
#include "client_vfd/plugin/modes/swmr.h"

namespace h5mirror::vfd {

class WritableMode : public DriverFile {
 public:
  ~WritableMode() override { DropLayers(); }

  // Before the first call of HDF5's. `layer` lies over bytes(), and is the uppermost then.
  void AddLayer(std::unique_ptr<FileBytes> layer);
  FileBytes& bytes() { return *top_; }
  void ExpectFirstRead(FirstRead::File file) { first_read_.Expect(std::move(file)); }
  // It was opened with H5F_ACC_SWMR_WRITE.
  void OpenedForSwmr() { swmr_ = SwmrFlags(SwmrFlags::Opened::kForSwmr); }

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override { return top_->Flush(dxpl, closing); }
  haddr_t Eof(H5FD_mem_t type) const override { return top_->Eof(type); }
  herr_t BeforeFirstRead() override { return first_read_.Check(host(), under(), *top_); }

 protected:
  // The lowest layer is `under`; or `mirror` over it, which is the mode's own.
  WritableMode(const HostLibrary& host, std::unique_ptr<UnderFile> under, FileIdentity identity,
               FileBytes* mirror = nullptr)
      : DriverFile(host, std::move(under), std::move(identity)),
        top_(mirror != nullptr ? mirror : &this->under()) {}

  // Takes the layers away, from the top: each hands on its bytes. -1: one of them could not.
  herr_t CloseLayers();
  // Takes the layers away without handing bytes on, for the destructor of the file below them.
  void DropLayers();

 private:
  // Before the first write of a file that was opened for SWMR: the superblock that it has gets the
  // flags of its writer.
  herr_t MarkForSwmr();
  // A superblock with one of an SWMR writer's flags gets all of them, and the file's lock is given
  // up.
  herr_t WriteSuperblock(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                         const void* buffer);

  FileBytes* top_;
  SwmrFlags swmr_;
  FirstRead first_read_;
  std::vector<std::unique_ptr<FileBytes>> layers_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_WRITABLE_MODE_H_
