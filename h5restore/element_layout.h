// Where references lie in an element in memory.
#ifndef H5MIRROR_H5RESTORE_ELEMENT_LAYOUT_H_
#define H5MIRROR_H5RESTORE_ELEMENT_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// The three forms, told apart by their sizes in memory.
enum class ReferenceForm { kObject, kRegion, kStandard };

// A part of an element that has references in it.
struct Layout {
  enum class Kind { kReference, kParts, kSequence };
  Kind kind = Kind::kParts;
  ReferenceForm form = ReferenceForm::kObject;  // of kReference
  size_t offset = 0;                            // in the element around it
  size_t count = 1;                             // elements one behind the other, as of an array
  size_t size = 0;                              // bytes of each
  std::vector<Layout> parts;                    // of each; of kSequence one, that of its elements
};

// Of a type in memory, as H5Dget_type() and H5Aget_type() give it. kInternal: HDF5's error.
absl::StatusOr<Layout> LayoutOf(hid_t type);

// Calls `visit` with each reference of the element at `bytes`, until it fails.
absl::Status ForEachReference(const Layout& layout, char* bytes,
                              absl::FunctionRef<absl::Status(ReferenceForm, char*)> visit);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_ELEMENT_LAYOUT_H_
