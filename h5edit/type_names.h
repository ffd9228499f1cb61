// The predefined types that a script can name, without HDF5.
#ifndef H5MIRROR_H5EDIT_TYPE_NAMES_H_
#define H5MIRROR_H5EDIT_TYPE_NAMES_H_

#include <cstddef>
#include <optional>
#include <string_view>

#include "h5edit/ast.h"

namespace h5mirror::edit {

struct PredefinedType {
  std::string_view name;
  TypeClass type_class;
  size_t size_bytes;  // of native ones, on this machine
  bool is_signed;
};

// nullptr: there is no such type.
const PredefinedType* FindPredefined(std::string_view name);
// The known name that `name` was probably meant to be; empty: none is near.
std::string_view NearestPredefined(std::string_view name);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_TYPE_NAMES_H_
