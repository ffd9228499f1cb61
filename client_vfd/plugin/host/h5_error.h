// Messages on the host's HDF5 error stack, and quiet around calls that may fail.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_H5_ERROR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_H5_ERROR_H_

#include <string>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"

namespace h5mirror::vfd {

// Pushes `message` as a file-open error. Does nothing if the host exports no functions.
void PushOpenError(const HostLibrary& host, const std::string& message);

// The same in sec2's form: "unable to open file: name = '...', errno = ..., error message = '...'".
// h5py makes an OSError of that number from it.
void PushOpenErrno(const HostLibrary& host, const std::string& name, int error_number,
                   const std::string& message);
// Pushes a failed read of the file `name`, in sec2's form.
void PushReadErrno(const HostLibrary& host, const std::string& name, int error_number,
                   const std::string& message);
// The same of a failed write, truncate, flush or close.
void PushWriteErrno(const HostLibrary& host, const std::string& name, int error_number,
                    const std::string& message);

// While it lives, the host prints no error stack; the stack itself stays. HDF5 opens files
// tentatively and clears the errors, and a nested API call must not print them.
class QuietErrors {
 public:
  explicit QuietErrors(const HostApi& api);
  ~QuietErrors();
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  const HostApi& api_;
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// Saves the error stack over calls that clear it, and puts it back when destroyed.
class KeepErrors {
 public:
  explicit KeepErrors(const HostApi& api) : api_(api), stack_(api.e_get_current_stack()) {}
  ~KeepErrors() {
    if (stack_ >= 0) api_.e_set_current_stack(stack_);
  }
  KeepErrors(const KeepErrors&) = delete;
  KeepErrors& operator=(const KeepErrors&) = delete;

 private:
  const HostApi& api_;
  hid_t stack_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_H5_ERROR_H_
