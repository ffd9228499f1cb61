// Attributes and objects as h5dump writes them.
#ifndef H5MIRROR_H5EDIT_DDL_H_
#define H5MIRROR_H5EDIT_DDL_H_

#include <hdf5.h>

#include <string>

#include "absl/status/statusor.h"

namespace h5mirror::edit {

std::string TypeDdl(hid_t type);
std::string SpaceDdl(hid_t space);
// An attribute of an object: its type, space and values. kNotFound: it has none of this name.
absl::StatusOr<std::string> AttributeDdl(hid_t object, const std::string& name);
// The kind of an object, its attributes, and the links of a group; one line each.
absl::StatusOr<std::string> ObjectListing(hid_t object, const std::string& path);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_DDL_H_
