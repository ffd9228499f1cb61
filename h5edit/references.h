// References of a script as HDF5's, and back.
#ifndef H5MIRROR_H5EDIT_REFERENCES_H_
#define H5MIRROR_H5EDIT_REFERENCES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "h5edit/h5_types.h"

namespace h5mirror::edit {

// An object of the file itself, and not of one that an external link leads to. `at` is where the
// script names it.
absl::StatusOr<hdf5::Handle> OpenInFile(const std::string& path, size_t at, Scene& scene);

// Writes the stored form of a reference to `out`, which must hold zeros. CheckValues() must have
// passed the reference.
absl::Status MakeReference(const ElementType& element, const Value& value, Scene& scene, char* out);

// `DATASET "/d"`, with the region that it has; "NULL" of none. `object` is any of its file.
std::string ReferenceText(hid_t object, hid_t type, const char* bytes);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_REFERENCES_H_
