// A file driver as -v names it: "NAME" or "NAME:CONFIG".
#ifndef H5MIRROR_H5PERF_SERIAL_DRIVER_NAME_H_
#define H5MIRROR_H5PERF_SERIAL_DRIVER_NAME_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::perf {

inline constexpr char kMirrorDriver[] = "h5mirror";

struct Driver {
  std::string name = "sec2";   // stock ones in lower case; others as HDF5 finds their plugin
  std::string config;          // of a plugin
  std::string label = "sec2";  // as the report names it; with no token in it
};

// "h5mirror:server=node7,ack=none": a comma before a key is a ';' of the driver's. h5mirror alone
// takes HDF5_DRIVER_CONFIG. kInvalidArgument where there is no name. Nothing is known here of which
// drivers there are.
absl::StatusOr<Driver> ParseDriverName(std::string_view text);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_DRIVER_NAME_H_
