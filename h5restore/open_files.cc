#include "h5restore/open_files.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

// HDF5's own words for a lock of another program, and those of the driver for a lease or an open
// file (EAGAIN).
bool IsInUse(absl::string_view message) {
  return absl::StrContains(message, "unable to lock file") ||
         absl::StrContains(message, "errno = 11,") ||
         absl::StrContains(message, "Resource temporarily unavailable");
}

absl::StatusOr<Handle> AccessList(const std::string& config) {
  constexpr char kWhat[] = "load the driver";
  H5M_ASSIGN_OR_RETURN(Handle access, Own(H5Pcreate(H5P_FILE_ACCESS), kWhat));
  H5M_RETURN_IF_ERROR(Check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), kWhat));
  if (!config.empty()) {
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_driver_by_name(access.get(), "h5mirror", config.c_str()), kWhat));
  }
  return access;
}

}  // namespace

absl::StatusOr<Handle> OpenFile(const tools::FileToOpen& file, Access access) {
  H5M_ASSIGN_OR_RETURN(const Handle list, AccessList(file.config));
  const char* const path = file.path.c_str();
  const hid_t id =
      access == Access::kMake
          ? H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, list.get())
          : H5Fopen(path, access == Access::kRead ? H5F_ACC_RDONLY : H5F_ACC_RDWR, list.get());
  auto opened = Own(id, StrCat("open ", file.said));
  if (opened.ok() || !IsInUse(opened.status().message())) return opened;
  return absl::FailedPreconditionError(
      StrCat("another program has ", file.said,
             " open, so nothing was changed; end it, or wait until it has closed the file (",
             opened.status().message(), ")"));
}

absl::Status CloseFile(Handle file, const std::string& said) {
  // The handle's own destructor would not say whether it went well.
  return Check(H5Fclose(file.release()), StrCat("close ", said));
}

absl::StatusOr<Handle> OpenScratch() {
  constexpr char kWhat[] = "make a file in memory";
  H5M_ASSIGN_OR_RETURN(const Handle list, AccessList(""));
  H5M_RETURN_IF_ERROR(Check(H5Pset_fapl_core(list.get(), 1 << 16, false), kWhat));
  return Own(H5Fcreate("h5mirror-restore", H5F_ACC_TRUNC, H5P_DEFAULT, list.get()), kWhat);
}

}  // namespace h5mirror::restore
