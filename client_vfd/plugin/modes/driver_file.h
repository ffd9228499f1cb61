// One file that HDF5 has open through the driver. There is a class for each mode:
//
//   LocalMode      a local file that no server gets: read, left out by the rules, mode=off
//   MirroredMode   a local file, and its mirrors
//   RemoteMode     written with mode=remote; RemoteProbe, opened while this process writes it
//   ReaderMode     a version, or a cut, of a file on a server
//   EmbeddedMode   written with server=embedded
//   ParallelFile   a local file of several ranks (under=mpio), and its mirrors
//
// Made by open/; driver.cc translates HDF5's calls. Called by one thread at a time, as HDF5 does.
// Functions may throw; a call that threw has failed.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_DRIVER_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_DRIVER_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/file_identity.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/modes/parallel_bytes.h"
#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

class MirroredFile;

class DriverFile {
 public:
  virtual ~DriverFile() = default;
  DriverFile(const DriverFile&) = delete;
  DriverFile& operator=(const DriverFile&) = delete;

  // As H5FD_class_t's.
  virtual herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) = 0;
  virtual herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                       const void* buffer) = 0;
  virtual herr_t Truncate(hid_t dxpl, hbool_t closing) = 0;
  virtual herr_t Flush(hid_t dxpl, hbool_t closing) = 0;
  virtual haddr_t Eof(H5FD_mem_t type) const = 0;
  // Also closes the layers below. Only the destructor may be called afterwards.
  virtual herr_t Close() { return CloseUnder(); }

  // The work of HDF5's first read before it reads. -1: it fails, as the error stack says.
  virtual herr_t BeforeFirstRead() { return 0; }

  // The source of the files that it leads to; null: the program names them itself.
  virtual RootPtr LinkRoot() const { return nullptr; }

  // The part that a member of a family, split or multi file needs; null: it makes no cuts.
  virtual MirroredFile* Mirror() { return nullptr; }

  // The part that only a file of several ranks has; null: it is no such file.
  virtual ParallelBytes* Parallel() { return nullptr; }

  // Of H5FDh5mirror.h. The next consistent flush becomes this barrier instead of a tick;
  // FinishBarrier: 0 acknowledged as configured, 1 not.
  virtual void ArmBarrier(H5mBarrier, const char* /*comment*/) {}
  virtual int FinishBarrier() { return 1; }
  // The next consistent flush becomes a tick if the file changed since its newest cut. False: no
  // flush of this file makes a cut.
  virtual bool ArmTick() { return false; }
  virtual void Status(H5mStatus* status) const { *status = H5mStatus{}; }
  // The mirrors, and how one of them does.
  virtual std::vector<std::string> Servers() const { return {}; }
  virtual void StatusOf(size_t /*index*/, H5mStatus* status) const { *status = H5mStatus{}; }

  const HostLibrary& host() const { return host_; }
  UnderFile& under() const { return *under_; }
  const FileIdentity& identity() const { return identity_; }

 protected:
  // `host` must outlive it.
  DriverFile(const HostLibrary& host, std::unique_ptr<UnderFile> under, FileIdentity identity)
      : host_(host), under_(std::move(under)), identity_(std::move(identity)) {}
  // It reads another version or cut from now on.
  void SetVersion(std::string version) { identity_.version = std::move(version); }
  // Called once, in Close(). under() must not be used afterwards.
  herr_t CloseUnder() {
    const herr_t result = under_->Close();
    under_.reset();
    return result;
  }

 private:
  const HostLibrary& host_;
  std::unique_ptr<UnderFile> under_;
  FileIdentity identity_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_DRIVER_FILE_H_
