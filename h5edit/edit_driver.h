// HDF5 over an EditFile: a file driver inside the process.
#ifndef H5MIRROR_H5EDIT_EDIT_DRIVER_H_
#define H5MIRROR_H5EDIT_EDIT_DRIVER_H_

#include <string>

#include "h5edit/edit_file.h"
#include "hdf5/handle.h"

namespace h5mirror::edit {

// Opens the HDF5 file that `bytes` are, for reading and writing; `name` is the file that they are
// of. `bytes` must outlive it. Files that external links and virtual datasets lead to are read as
// they are, and a write to them fails. Errors of an EditFile: hdf5::TakeDriverError().
absl::StatusOr<hdf5::Handle> OpenOver(EditFile& bytes, const std::string& name);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_EDIT_DRIVER_H_
