#include "h5perf/hdf5_driver.h"

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/install_dirs.h"

namespace h5mirror::pperf {
namespace {

using hdf5::Check;

// A driver without MPI would have each process write a file of its own under one name.
absl::Status CheckKnowsMpi(const Driver& driver, hid_t fapl) {
  unsigned long flags = 0;
  if (H5FDdriver_query(H5Pget_driver(fapl), &flags) < 0) return hdf5::ErrorOf(driver.name);
  // The features of h5mirror's driver depend on the driver below it.
  if (driver.name == perf::kMirrorDriver || (flags & H5FD_FEAT_HAS_MPI) != 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("-v ", driver.label,
                                           ": this driver knows nothing of MPI; mpio does, and "
                                           "h5mirror over it"));
}

absl::Status SetNamed(const Driver& driver, hid_t fapl) {
  if (H5Pset_driver_by_name(fapl, driver.name.c_str(), ConfigOf(driver).c_str()) >= 0) {
    return CheckKnowsMpi(driver, fapl);
  }
  const absl::Status why = hdf5::ErrorOf(StrCat("there is no file driver ", driver.name));
  return absl::InvalidArgumentError(
      StrCat("-v ", driver.label, ": ", ToStd(why.message()),
             "; mpio is HDF5's own, plugins are looked for in HDF5_PLUGIN_PATH"));
}

}  // namespace

void AddPluginDir() {
  if (const auto dir = tools::FindPluginDir(""); dir.ok()) H5PLappend(dir->c_str());
  H5Eclear2(H5E_DEFAULT);
}

std::string ConfigOf(const Driver& driver) {
  if (driver.name != perf::kMirrorDriver ||
      StrCat(";", driver.config).find(";under=") != std::string::npos) {
    return driver.config;
  }
  return StrCat(driver.config, driver.config.empty() ? "" : ";", "under=mpio");
}

absl::StatusOr<hdf5::Handle> MakeFapl(const Options& options, const Driver& driver,
                                      const Group& group) {
  H5M_ASSIGN_OR_RETURN(hdf5::Handle fapl, hdf5::Own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
  // The communicator is a property of the list, which stays where another driver is set.
  H5M_RETURN_IF_ERROR(Check(H5Pset_fapl_mpio(fapl.get(), group.comm, group.info), "driver mpio"));
  if (driver.name != "mpio") H5M_RETURN_IF_ERROR(SetNamed(driver, fapl.get()));
  H5M_RETURN_IF_ERROR(
      Check(H5Pset_alignment(fapl.get(), options.threshold, options.alignment), "-a and -T"));
  return fapl;
}

std::string LibraryVersion() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return StrCat(major, ".", minor, ".", release);
}

}  // namespace h5mirror::pperf
