// Paths in a file that is restored into.
#ifndef H5MIRROR_H5RESTORE_PATHS_H_
#define H5MIRROR_H5RESTORE_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "h5restore/link_graph.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

// Why there is no object at a path.
enum class Absence { kNone, kMissing, kOtherFile, kOtherKind };

// The object at a path of this very file, and of the given kind if there is one (H5I_BADID: any).
// Invalid: there is none, or an external link leads away to it. `why` is set in any case.
hdf5::Handle OpenHere(hid_t file, const std::string& path, H5I_type_t kind, Absence* why = nullptr);

// The object at a path, and the groups that are missing before it.
struct PathState {
  bool is_there = false;
  H5L_info2_t link{};              // where it is there
  std::vector<std::string> makes;  // parents that are missing, outermost first
  std::string no_group;            // the parent that is no group, or lies in another file
};
// Errors: kInternal HDF5's error. `said` is the file.
absl::StatusOr<PathState> LookAtPath(hid_t file, const std::string& path, const std::string& said);

// A list for links that are made: with missing parents, and the name's character set.
absl::StatusOr<hdf5::Handle> LinkProperties(H5T_cset_t character_set);

// The hard link at a path. kInternal: there is no group before it.
absl::StatusOr<HardLink> LinkAt(hid_t file, const std::string& path);

// "group", "dataset" or "datatype".
std::string KindOfObject(hid_t object);

// "/a" and "/a/b" are, for "/a".
bool IsAtOrBelow(const std::string& path, const std::string& top);

// "/a/b" of "/a/b/c"; "/" of "/a".
std::string ParentOf(const std::string& path);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_PATHS_H_
