// The bytes below the driver ("under"): the lowest layer of a file, and HDF5's questions to a file
// besides its bytes.
//
//   HostFile      a local file, through a driver of the host's libhdf5 (local_file.h)
//   PosixFile     the same for a host that exports no functions (local_posix.cc)
//   ReaderFile    a version or cut of a file on a server
//   RemoteFile    mode=remote: a spool over such a cut
//   EmbeddedFile  server=embedded: the file's store
//
// The driver itself (driver.cc) makes the only H5FD_class_t of the plugin. HDF5 never sees these
// objects: they need no class.
//
// Called by one thread at a time, as HDF5 does. A call that fails leaves the reason on the host's
// error stack.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_UNDER_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_UNDER_FILE_H_

#include <cstdint>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/modes/file_bytes.h"

namespace h5mirror::vfd {

// The feature flags that HDF5 sees for each file (H5FDdevelop.h, H5FD_FEAT_*): sec2's, except two
// that assume a local file. POSIX_COMPAT_HANDLE lets HDF5 lstat() the name. SUPPORTS_SWMR_IO is for
// files whose readers see each write.
constexpr unsigned long kCommonFeatures =
    H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
    H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
constexpr unsigned long kSec2Features =
    kCommonFeatures | H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO;

class UnderFile : public FileBytes {
 public:
  // As H5FD_class_t's. A file without a handle: there is no descriptor that a program could use.
  virtual herr_t Query(unsigned long* flags) const {
    *flags = features_;
    return 0;
  }
  virtual haddr_t Eoa(H5FD_mem_t) const { return eoa_; }
  virtual herr_t SetEoa(H5FD_mem_t, haddr_t address) {
    eoa_ = address;
    return 0;
  }
  virtual bool HasHandle() const { return false; }
  virtual herr_t Handle(hid_t /*fapl*/, void** /*handle*/) { return -1; }
  // The file of the host's driver, for calls that only that driver has; null: there is none.
  // Borrowed.
  virtual H5FD_t* HostFileBelow() const { return nullptr; }
  virtual herr_t Lock(hbool_t /*exclusive*/) { return 0; }
  virtual void Unlock() {}
  virtual herr_t Control(uint64_t /*code*/, uint64_t flags, const void* /*input*/,
                         void** /*output*/) {
    return RefuseControl(flags);
  }
  herr_t Truncate(hid_t, hbool_t) override { return 0; }
  herr_t Flush(hid_t, hbool_t) override { return 0; }
  // Called once; only the destructor may follow. Without Close() the destructor drops unwritten
  // bytes, and reports no error.
  virtual herr_t Close() { return 0; }

  // The file descriptor; -1 if it has none. Borrowed.
  int Descriptor() {
    void* handle = nullptr;
    if (!HasHandle() || Handle(H5P_DEFAULT, &handle) < 0 || handle == nullptr) return -1;
    return *static_cast<int*>(handle);
  }
  // A driver's answer to a control code that it does not know.
  static herr_t RefuseControl(uint64_t flags) {
    return (flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG) != 0 ? -1 : 0;
  }

 protected:
  explicit UnderFile(unsigned long features) : features_(features) {}
  haddr_t eoa() const { return eoa_; }

 private:
  const unsigned long features_;
  haddr_t eoa_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_UNDER_FILE_H_
