#include "hdf5/byte_driver.h"

#include <utility>

namespace h5mirror::hdf5 {
namespace {

absl::Status& LastError() {
  static absl::Status error;
  return error;
}

}  // namespace

absl::Status TakeDriverError() { return std::exchange(LastError(), absl::OkStatus()); }

herr_t Noted(absl::Status status) {
  if (status.ok()) return 0;
  LastError() = std::move(status);
  return -1;
}

absl::StatusOr<Handle> OpenThrough(const Handle& access, const std::string& name, unsigned flags,
                                   std::string_view what) {
  auto file = Own(H5Fopen(name.c_str(), flags, access.get()), what);
  if (file.ok()) return file;
  const absl::Status cause = TakeDriverError();
  return cause.ok() ? file.status() : cause;
}

}  // namespace h5mirror::hdf5
