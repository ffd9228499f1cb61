// The HDF5 libraries of this machine, tried in children (hdf5_probe.c).
#ifndef H5MIRROR_CLI_PROCESS_LIBHDF5_H_
#define H5MIRROR_CLI_PROCESS_LIBHDF5_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/process/child.h"

namespace h5mirror::tools {

struct LibHdf5 {
  std::string path;
  std::string source;   // how it was found: "h5py 3.12.1 of python3", "the system"
  std::string version;  // "1.14.4"

  // VFD plugins came with 1.14 (1.13 was its development series).
  bool takes_plugins() const;
};

// True for "1.14.0" and later. False also if `version` is no version.
bool TakesPlugins(std::string_view version);

// The libhdf5 of h5py in `python` (a program or a path).
// kNotFound: no such program, or it has no h5py.
absl::StatusOr<LibHdf5> LibHdf5OfPython(const std::string& python);

// The libraries that the dynamic linker knows, and those in LD_LIBRARY_PATH.
std::vector<LibHdf5> LibHdf5OfSystem();

// One that the user named.
absl::StatusOr<LibHdf5> LibHdf5At(const std::string& path);

// The environment in which a library loads our driver from `plugin_dir`, and no connector.
EnvironmentChanges DriverEnvironment(const std::string& plugin_dir, const std::string& config);

// Runs one of the probe's verbs. The error has the first lines of the probe's own message.
absl::Status Probe(const std::vector<std::string>& arguments, const EnvironmentChanges& changes);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_PROCESS_LIBHDF5_H_
