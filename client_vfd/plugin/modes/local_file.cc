#include "client_vfd/plugin/modes/local_file.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/mpio_driver.h"

namespace h5mirror::vfd {
namespace {

// HDF5's own defaults of H5Pset_fapl_direct (H5FDdirect.h).
constexpr size_t kDirectAlignmentBytes = 4096;
constexpr size_t kDirectCopyBytes = 16 << 20;

// The communicator is another property of the list, and stays.
herr_t SetMpio(const HostLibrary& host, hid_t fapl) {
  const HostApi& api = host.api;
  const hid_t driver = MpioDriver(api);
  if (driver < 0 || api.p_set_driver == nullptr) {
    PushOpenError(host, "under=mpio: " + host.path + " was built without MPI; leave out under=");
    return -1;
  }
  return api.p_set_driver(fapl, driver, nullptr);
}

herr_t SetUnder(const HostLibrary& host, UnderDriver under, hid_t fapl) {
  const HostApi& api = host.api;
  switch (under) {
    case UnderDriver::kDirect:
      if (api.p_set_fapl_direct == nullptr) {
        PushOpenError(host, "under=direct: " + host.path + " was built without the direct driver");
        return -1;
      }
      return api.p_set_fapl_direct(fapl, kDirectAlignmentBytes, kDirectAlignmentBytes,
                                   kDirectCopyBytes);
    case UnderDriver::kLog:
      if (api.p_set_fapl_log == nullptr) {
        PushOpenError(host, "under=log: " + host.path + " has no log driver");
        return -1;
      }
      return api.p_set_fapl_log(fapl, nullptr, 0, 0);
    case UnderDriver::kMpio:
      return SetMpio(host, fapl);
    case UnderDriver::kSec2:
      break;
  }
  return api.p_set_fapl_sec2(fapl);
}

// Only those functions of the driver may be null that H5FD_class_t calls optional.
class HostFile final : public UnderFile {
 public:
  // Takes `file` over.
  HostFile(const HostLibrary& host, H5FD_t* file)
      : UnderFile(kSec2Features), host_(host), file_(file), class_(*file->cls) {}
  ~HostFile() override {
    if (file_ != nullptr) HostFile::Close();
  }

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override {
    return class_.read(file_, type, dxpl, addr, size, buffer);
  }
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
               const void* buffer) override {
    return class_.write(file_, type, dxpl, addr, size, buffer);
  }
  herr_t Truncate(hid_t dxpl, hbool_t closing) override {
    return class_.truncate != nullptr ? class_.truncate(file_, dxpl, closing) : 0;
  }
  herr_t Flush(hid_t dxpl, hbool_t closing) override {
    return class_.flush != nullptr ? class_.flush(file_, dxpl, closing) : 0;
  }
  haddr_t Eof(H5FD_mem_t type) const override { return class_.get_eof(file_, type); }
  haddr_t Eoa(H5FD_mem_t type) const override { return class_.get_eoa(file_, type); }
  herr_t SetEoa(H5FD_mem_t type, haddr_t address) override {
    return class_.set_eoa(file_, type, address);
  }
  herr_t Query(unsigned long* flags) const override {
    UnderFile::Query(flags);
    return class_.query != nullptr ? class_.query(file_, flags) : 0;
  }
  H5FD_t* HostFileBelow() const override { return file_; }
  bool HasHandle() const override { return class_.get_handle != nullptr; }
  herr_t Handle(hid_t fapl, void** handle) override {
    return class_.get_handle(file_, fapl, handle);
  }
  herr_t Lock(hbool_t exclusive) override {
    return class_.lock != nullptr ? class_.lock(file_, exclusive) : 0;
  }
  void Unlock() override {
    if (class_.unlock != nullptr) class_.unlock(file_);
  }
  herr_t Control(uint64_t code, uint64_t flags, const void* input, void** output) override {
    return class_.ctl != nullptr ? class_.ctl(file_, code, flags, input, output)
                                 : RefuseControl(flags);
  }
  // A reason that stands on the error stack, why an open fails, stays there: the call of the
  // library would clear it.
  herr_t Close() override {
    H5FD_t* const file = std::exchange(file_, nullptr);
    if (host_.api.e_get_num(H5E_DEFAULT) <= 0) return host_.api.fd_close(file);
    const QuietErrors quiet(host_.api);
    const KeepErrors keep(host_.api);
    return host_.api.fd_close(file);
  }

 private:
  const HostLibrary& host_;
  H5FD_t* file_;
  const H5FD_class_t& class_;
};

}  // namespace

Locking WantedLocking(const HostLibrary& host, hid_t fapl) {
  // The environment wins, as in HDF5 (H5F__check_if_using_file_locks).
  const char* value = std::getenv("HDF5_USE_FILE_LOCKING");
  if (value != nullptr) {
    if (std::strcmp(value, "FALSE") == 0 || std::strcmp(value, "0") == 0) return Locking::kNo;
    if (std::strcmp(value, "TRUE") == 0 || std::strcmp(value, "1") == 0 ||
        std::strcmp(value, "BEST_EFFORT") == 0) {
      return Locking::kYes;
    }
  }
  if (!host.api.usable) return Locking::kYes;
  hbool_t use = true;
  hbool_t ignore_when_disabled = true;
  if (host.api.p_get_file_locking(fapl, &use, &ignore_when_disabled) < 0) return Locking::kYes;
  return use ? Locking::kYes : Locking::kNo;
}

std::unique_ptr<UnderFile> OpenLocal(const HostLibrary& host, const Config& config,
                                     const char* name, unsigned flags, hid_t fapl,
                                     haddr_t maxaddr) {
  if (!host.api.usable) return OpenPosix(name, flags);
  // A copy of the caller's list, so that locking and image properties reach the under driver.
  QuietErrors quiet(host.api);
  const hid_t copy = host.api.p_copy(fapl);
  if (copy < 0) return nullptr;
  H5FD_t* under = nullptr;
  if (SetUnder(host, config.under, copy) >= 0) {
    under = host.api.fd_open(name, flags, copy, maxaddr);
  }
  KeepErrors keep(host.api);
  host.api.p_close(copy);
  return under != nullptr ? std::make_unique<HostFile>(host, under) : nullptr;
}

}  // namespace h5mirror::vfd
