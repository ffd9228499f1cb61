// The file drivers of parallel HDF5 that -v names.
#ifndef H5MIRROR_H5PERF_HDF5_DRIVER_H_
#define H5MIRROR_H5PERF_HDF5_DRIVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "h5perf/group.h"
#include "h5perf/options.h"
#include "hdf5/handle.h"

namespace h5mirror::pperf {

// Lets HDF5 find h5mirror's plugin of this installation after all others. hdf5::StartLibrary() has
// been called.
void AddPluginDir();

// How `driver` is configured: h5mirror gets under=mpio behind what its user gave, unless that names
// a driver below it.
std::string ConfigOf(const Driver& driver);

// A file access list for `group`: mpio's communicator and hints, under any driver, and alignment.
// kInvalidArgument names a driver that is not there, or that knows nothing of MPI.
absl::StatusOr<hdf5::Handle> MakeFapl(const Options& options, const Driver& driver,
                                      const Group& group);

// "1.14.5", of the library that is running.
std::string LibraryVersion();

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_HDF5_DRIVER_H_
