// Types and spaces of a script as HDF5's.
#ifndef H5MIRROR_H5EDIT_H5_TYPES_H_
#define H5MIRROR_H5EDIT_H5_TYPES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "h5edit/ast.h"
#include "h5edit/values.h"
#include "hdf5/handle.h"

namespace h5mirror::edit {

// Where a script is carried out, and after an error the place in the script that is to blame.
struct Scene {
  absl::Status Fail(size_t at, const std::string& message) {
    blame = at;
    return absl::FailedPreconditionError(message);
  }

  hid_t file = H5I_INVALID_HID;
  hid_t access = H5P_DEFAULT;  // of links that lead to other files
  std::optional<size_t> blame;
};

// The type in the file; one that is committed there is opened. kUnimplemented: this HDF5 has no
// such type.
absl::StatusOr<hdf5::Handle> MakeType(const TypeSpec& spec, Scene& scene);
absl::StatusOr<hdf5::Handle> MakeSpace(const SpaceSpec& spec);

// A property list of the class, to make an attribute or a link of that name: readers are told where
// it is UTF-8.
absl::StatusOr<hdf5::Handle> NameList(hid_t list_class, const std::string& name);

// The values that elements of a type in the file can have. kUnimplemented: values of its class
// cannot be written in a script.
absl::StatusOr<ElementType> ElementTypeOf(hid_t type);

// The bytes that a type's own description takes in the file; 0: HDF5 cannot tell.
size_t EncodedBytes(hid_t type);

// "H5T_COMPOUND" and the like.
const char* ClassName(H5T_class_t type_class);

// The low `size` bytes of `word`, in the order that `order` says.
void AppendWord(uint64_t word, size_t size, H5T_order_t order, std::string* out);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_H5_TYPES_H_
