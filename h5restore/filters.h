// Filters that values pass when they are not copied as stored.
#ifndef H5MIRROR_H5RESTORE_FILTERS_H_
#define H5MIRROR_H5RESTORE_FILTERS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Whether values of the type lie apart from their dataset, at any depth: strings and sequences of
// variable length. HDF5 unpacks these to copy them.
bool HasVariableLength(hid_t type);

// The first filter of the dataset that this process can't run both ways, "lzf (32000)"; empty:
// there is none. kInternal: HDF5's error for `what`.
absl::StatusOr<std::string> MissingFilter(hid_t dataset, std::string_view what);

// kFailedPrecondition: names the dataset, the filter and the way out.
absl::Status FilterIsMissing(std::string_view dataset, std::string_view filter);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_FILTERS_H_
