// HDF5's file drivers as -v names them: property lists, and the files that each one makes.
#ifndef H5MIRROR_H5PERF_SERIAL_DRIVER_H_
#define H5MIRROR_H5PERF_SERIAL_DRIVER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "h5perf_serial/driver_name.h"
#include "hdf5/handle.h"

namespace h5mirror::perf {

// "sec2", "h5mirror:server=node7,ack=none": a comma before a key is a ';' of the driver's. "mig"
// and "metadata=memory" are h5mirror's driver without a server. kInvalidArgument where a stock
// driver is given a configuration, or this HDF5 was built without it.
absl::StatusOr<Driver> ParseDriver(std::string_view text);

// Lets HDF5 find h5mirror's plugin of this installation after all others. StartLibrary() has been
// called.
void AddPluginDir();

// Makes `driver` that of `fapl`. `base`: as DataFiles(). The error names the driver.
absl::Status SetDriver(const Driver& driver, const std::string& base, hid_t fapl);

// The name that HDF5 is given, for data files that begin with `base`.
std::string Hdf5Name(const Driver& driver, const std::string& base);

// The files that are there now: one, or as many as the driver made.
std::vector<std::string> DataFiles(const Driver& driver, const std::string& base);

// Also what lies beside them: an onion's history, a mirror's record.
void RemoveDataFiles(const Driver& driver, const std::string& base);

// What the mirror of a file that is being written is in, where it is not mirrored as it was asked
// to; empty otherwise, and for all other drivers.
std::string MirrorComplaint(const Driver& driver, hid_t file);

// The same once it is closed: something is noted beside it that the server lacks.
std::string ClosedMirrorComplaint(const Driver& driver, const std::string& base);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_DRIVER_H_
