// Dimension scales of restored datasets.
#ifndef H5MIRROR_H5RESTORE_SCALES_H_
#define H5MIRROR_H5RESTORE_SCALES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "h5restore/survey.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Whether the object, which `what` is of, has a dimension scale that is not among the `inside`
// tokens. Such a scale stays in the target, and its own list (REFERENCE_LIST) does not get the
// copy. kInternal: HDF5's error for `said`.
absl::StatusOr<bool> HasScalesOutside(hid_t object, const Surveyed& what,
                                      const absl::flat_hash_map<std::string, std::string>& inside,
                                      const std::string& said);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_SCALES_H_
