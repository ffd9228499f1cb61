// Types, spaces and values of a script as HDF5's.
#ifndef H5MIRROR_TOOLS_H5EDIT_H5_TYPES_H_
#define H5MIRROR_TOOLS_H5EDIT_H5_TYPES_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/h5edit/ast.h"
#include "tools/h5edit/values.h"
#include "tools/hdf5/handle.h"

namespace h5mirror::edit {

// The type in the file. kUnimplemented: this HDF5 has no such type.
absl::StatusOr<hdf5::Handle> MakeType(const TypeSpec& spec);
absl::StatusOr<hdf5::Handle> MakeSpace(const SpaceSpec& spec);

// What elements of a type in the file take. kUnimplemented: values of its class cannot be written
// in a script.
absl::StatusOr<ElementType> ElementTypeOf(hid_t type);

// "H5T_COMPOUND" and the like.
const char* ClassName(H5T_class_t type_class);

// Values as HDF5 takes them: memory, and the type that it has.
class MemoryValues {
 public:
  static absl::StatusOr<MemoryValues> Make(const ElementType& element, hid_t file_type,
                                           const ValueList& list);

  hid_t type() const { return type_.get(); }
  const void* data() const { return raw_.empty() ? encoded_.data() : raw_.data(); }
  // Of one value in memory.
  size_t stride() const { return stride_; }

 private:
  hdf5::Handle type_;
  Encoded encoded_;
  std::string raw_;  // of enums: as they are in the file
  size_t stride_ = 0;
};

}  // namespace h5mirror::edit

#endif  // H5MIRROR_TOOLS_H5EDIT_H5_TYPES_H_
