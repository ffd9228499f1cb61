// Paths in a file that is restored into.
#ifndef H5MIRROR_H5RESTORE_PATHS_H_
#define H5MIRROR_H5RESTORE_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// The object at a path of this very file, and of the given kind if there is one (H5I_BADID: any).
// Invalid: there is none, or an external link leads away to it.
hdf5::Handle OpenHere(hid_t file, const std::string& path, H5I_type_t kind);

// What is at a path, and what is missing before it.
struct PathState {
  bool is_there = false;
  H5L_info2_t link{};              // where it is there
  std::vector<std::string> makes;  // parents that are missing, outermost first
};
// Errors: kFailedPrecondition a parent is no group, or lies in another file. `said` is the file.
absl::StatusOr<PathState> LookAtPath(hid_t file, const std::string& path, const std::string& said);

// A list for links that are made: with missing parents, and the name's character set.
absl::StatusOr<hdf5::Handle> LinkProperties(H5T_cset_t character_set);

// "/a/b" of "/a/b/c"; "/" of "/a".
std::string ParentOf(const std::string& path);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_PATHS_H_
