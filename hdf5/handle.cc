#include "hdf5/handle.h"

#include <stdlib.h>

#include <cstdio>

#include "base/strings.h"

namespace h5mirror::hdf5 {
namespace {

bool shows_error_stacks = false;

// Walked from the outermost call inwards: what is seen last is the cause.
herr_t KeepDescription(unsigned, const H5E_error2_t* error, void* out) {
  if (error->desc != nullptr && *error->desc != '\0') *static_cast<std::string*>(out) = error->desc;
  return 0;
}

}  // namespace

absl::Status ErrorOf(std::string_view what) {
  std::string cause;
  if (shows_error_stacks) H5Eprint2(H5E_DEFAULT, stderr);
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, KeepDescription, &cause);
  H5Eclear2(H5E_DEFAULT);
  return absl::InternalError(StrCat(what, ": ", cause.empty() ? "HDF5 gives no reason" : cause));
}

void ShowErrorStacks() { shows_error_stacks = true; }

absl::StatusOr<Handle> Own(hid_t id, std::string_view what) {
  if (id < 0) return ErrorOf(what);
  return Handle(id);
}

absl::Status Check(herr_t code, std::string_view what) {
  return code < 0 ? ErrorOf(what) : absl::OkStatus();
}

// Of the whole space HDF5 (1.14.5) would divide by zero where it has 32 dimensions.
absl::Status Reclaim(hid_t type, hid_t space, void* values) {
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count == 0) return absl::OkStatus();
  const auto size = static_cast<hsize_t>(count);
  const Handle flat(count < 0 ? H5I_INVALID_HID : H5Screate_simple(1, &size, nullptr));
  if (!flat.valid()) return ErrorOf("give back values");
  return Check(H5Treclaim(type, flat.get(), H5P_DEFAULT, values), "give back values");
}

absl::Status StartLibrary() {
  for (const char* name : {"HDF5_DRIVER", "HDF5_DRIVER_CONFIG", "HDF5_VOL_CONNECTOR"}) {
    unsetenv(name);
  }
  if (H5open() < 0) return absl::InternalError("the HDF5 library cannot be initialised");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  return absl::OkStatus();
}

}  // namespace h5mirror::hdf5
