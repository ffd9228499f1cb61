// HDF5's identifiers with an owner, and its errors as absl::Status.
#ifndef H5MIRROR_HDF5_HANDLE_H_
#define H5MIRROR_HDF5_HANDLE_H_

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h5mirror::hdf5 {

// Owns one identifier of any kind: file, object, space, type, property list, attribute. Movable;
// not thread-safe, as HDF5 is not.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ > 0) H5Idec_ref(id_);
  }

  hid_t get() const { return id_; }
  // The caller closes it, and sees whether that worked.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// The deepest message of HDF5's error stack, behind "what: ". Clears the stack.
// kInternal; kDataLoss and others come from a driver by way of the caller.
absl::Status ErrorOf(std::string_view what);

// From now on ErrorOf() also prints the stack, as HDF5 does, on standard error.
void ShowErrorStacks();

// `id`, or ErrorOf(what) where it is negative.
absl::StatusOr<Handle> Own(hid_t id, std::string_view what);

// ErrorOf(what) where `code` is negative.
absl::Status Check(herr_t code, std::string_view what);

// Frees the memory that values point to, after a read of all of `space`.
absl::Status Reclaim(hid_t type, hid_t space, void* values);

// Keeps HDF5 from printing its error stacks, in this process and for good; errors of ours carry
// them. Also takes HDF5_DRIVER and HDF5_VOL_CONNECTOR out of the environment: a tool opens files
// with its own driver, in any environment. Call it before any other H5 function.
absl::Status StartLibrary();

}  // namespace h5mirror::hdf5

#endif  // H5MIRROR_HDF5_HANDLE_H_
