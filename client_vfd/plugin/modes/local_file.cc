#include "client_vfd/plugin/modes/local_file.h"

#include <cstdlib>
#include <cstring>

#include "client_vfd/plugin/host/h5_error.h"

namespace h5mirror::vfd {
namespace {

// HDF5's own defaults of H5Pset_fapl_direct (H5FDdirect.h).
constexpr size_t kDirectAlignmentBytes = 4096;
constexpr size_t kDirectCopyBytes = 16 << 20;

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
    case UnderDriver::kSec2:
      break;
  }
  return api.p_set_fapl_sec2(fapl);
}

herr_t CloseAnyhow(const HostLibrary& host, H5FD_t* under) {
  if (under->cls == PosixClass()) return under->cls->close(under);
  return host.api.fd_close(under);
}

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

H5FD_t* OpenLocal(const HostLibrary& host, const Config& config, const char* name, unsigned flags,
                  hid_t fapl, haddr_t maxaddr) {
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
  return under;
}

herr_t CloseLocal(const HostLibrary& host, H5FD_t* under) {
  if (!host.api.usable || host.api.e_get_num(H5E_DEFAULT) <= 0) return CloseAnyhow(host, under);
  const QuietErrors quiet(host.api);
  const KeepErrors keep(host.api);
  return CloseAnyhow(host, under);
}

int DescriptorOf(H5FD_t* under) {
  void* handle = nullptr;
  if (under->cls->get_handle == nullptr ||
      under->cls->get_handle(under, H5P_DEFAULT, &handle) < 0 || handle == nullptr) {
    return -1;
  }
  return *static_cast<int*>(handle);
}

herr_t LockLocal(H5FD_t* under, unsigned flags) {
  if (under->cls->lock == nullptr) return 0;
  return under->cls->lock(under, (flags & H5F_ACC_RDWR) != 0);
}

void UnlockLocal(H5FD_t* under) {
  if (under->cls->unlock != nullptr) under->cls->unlock(under);
}

}  // namespace h5mirror::vfd
