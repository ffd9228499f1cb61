// Hdf5Settings as HDF5's property lists.
#ifndef H5MIRROR_H5PERF_SERIAL_PROPERTY_LISTS_H_
#define H5MIRROR_H5PERF_SERIAL_PROPERTY_LISTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "h5perf_serial/options.h"
#include "hdf5/handle.h"

namespace h5mirror::perf {

// Each error names the setting that HDF5 refused.
absl::StatusOr<hdf5::Handle> MakeFapl(const Hdf5Settings& settings, const Driver& driver,
                                      const std::string& base);
absl::StatusOr<hdf5::Handle> MakeFcpl(const Hdf5Settings& settings);
absl::StatusOr<hdf5::Handle> MakeDcpl(const Hdf5Settings& settings);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_PROPERTY_LISTS_H_
