// Checks that no object of an archive is lost track of.
#ifndef H5MIRROR_TESTS_CRASH_CHECK_OBJECTS_H_
#define H5MIRROR_TESTS_CRASH_CHECK_OBJECTS_H_

#include "absl/status/status.h"
#include "base/env.h"

namespace h5mirror::store {

// The archive of the scenarios is this directory of the disk.
inline constexpr char kArchiveDirectory[] = "arc";

// kFailedPrecondition: an index names an archived object that is missing, or there is an object
// that no index names. No store may be open.
absl::Status CheckObjects(Env& env);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_CHECK_OBJECTS_H_
