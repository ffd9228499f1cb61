#include "client_vfd/plugin/host/h5_error.h"

#include "base/utf8.h"

namespace h5mirror::vfd {

void PushOpenError(const HostLibrary& host, const std::string& message) {
  const HostApi& api = host.api;
  if (!api.usable) return;
  api.e_push(H5E_DEFAULT, __FILE__, "H5FD_h5mirror_open", __LINE__, *api.e_err_cls, *api.e_file,
             *api.e_cantopenfile, "%s", Printable(message).c_str());
}

void PushOpenErrno(const HostLibrary& host, const std::string& name, int error_number,
                   const std::string& message) {
  PushOpenError(host, "unable to open file: name = '" + name + "', errno = " +
                          std::to_string(error_number) + ", error message = '" + message + "'");
}

namespace {

// In sec2's form.
std::string IoText(const char* what, const std::string& name, int error_number,
                   const std::string& message) {
  return std::string(what) + ": filename = '" + name +
         "', errno = " + std::to_string(error_number) + ", error message = '" + message + "'";
}

}  // namespace

void PushReadErrno(const HostLibrary& host, const std::string& name, int error_number,
                   const std::string& message) {
  const HostApi& api = host.api;
  if (!api.usable) return;
  api.e_push(H5E_DEFAULT, __FILE__, "H5FD_h5mirror_read", __LINE__, *api.e_err_cls, *api.e_file,
             *api.e_readerror, "%s",
             Printable(IoText("file read failed", name, error_number, message)).c_str());
}

void PushWriteErrno(const HostLibrary& host, const std::string& name, int error_number,
                    const std::string& message) {
  const HostApi& api = host.api;
  if (!api.usable) return;
  api.e_push(H5E_DEFAULT, __FILE__, "H5FD_h5mirror_write", __LINE__, *api.e_err_cls, *api.e_file,
             *api.e_writeerror, "%s",
             Printable(IoText("file write failed", name, error_number, message)).c_str());
}

QuietErrors::QuietErrors(const HostApi& api) : api_(api) {
  api_.e_get_auto(H5E_DEFAULT, &function_, &data_);
  api_.e_set_auto(H5E_DEFAULT, nullptr, nullptr);
}

QuietErrors::~QuietErrors() { api_.e_set_auto(H5E_DEFAULT, function_, data_); }

}  // namespace h5mirror::vfd
