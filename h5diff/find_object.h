// Finds the object that a path leads to, without leaving the file.
#ifndef H5MIRROR_H5DIFF_FIND_OBJECT_H_
#define H5MIRROR_H5DIFF_FIND_OBJECT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "h5diff/object_diff.h"

namespace h5mirror::tools {

struct FoundObject {
  // An object; or a link that leads to none in this file; or nothing at all.
  std::optional<OpenObject> object;
  std::string link;  // "external link to other.h5:/x", "soft link to /g"

  bool is_there() const { return object.has_value() || !link.empty(); }
  // "group", "dataset float64 (10,)", "soft link to /g"; empty: nothing is there.
  std::string Text() const;
};

// `path`: as PathInFile() makes it. Soft links are followed, external ones never: HDF5 would open
// a file of this machine that the file names. Errors: those of HDF5.
absl::StatusOr<FoundObject> FindObject(hid_t file, const std::string& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_FIND_OBJECT_H_
