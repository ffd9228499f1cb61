// The hard links of a file: the paths of an object, and the objects that a removal leaves.
#ifndef H5MIRROR_H5RESTORE_LINK_GRAPH_H_
#define H5MIRROR_H5RESTORE_LINK_GRAPH_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

struct HardLink {
  std::string group;  // its token
  std::string name;

  bool operator==(const HardLink&) const = default;
};

// Objects are named by their tokens (survey.h). A group may be below itself.
class LinkGraph {
 public:
  // Looks at the header of each object once. kInternal: HDF5's error for the file `said`.
  static absl::StatusOr<LinkGraph> Of(hid_t file, std::string_view said);

  const std::string& root() const { return root_; }
  // None: nothing leads to it, or it is the root.
  const std::vector<HardLink>& LinksTo(const std::string& object) const;

  // All that can be reached from `from`, and that itself, if `without` is removed.
  absl::flat_hash_set<std::string> Reachable(const std::string& from,
                                             const HardLink& without) const;

  // Paths from the group `from` to the object, without a loop: "a/b", or "." for itself. At most
  // `most` of them, and of many loops a search of bounded length finds fewer.
  std::vector<std::string> Paths(const std::string& from, const std::string& object,
                                 size_t most) const;

 private:
  struct Search;

  absl::Status AddMembers(hid_t file, const std::string& group, std::vector<std::string>* groups);
  void Climb(const std::string& at, const std::string& below, Search* search) const;

  std::string root_;
  absl::flat_hash_map<std::string, std::vector<std::pair<std::string, std::string>>>
      members_;  // names and objects, by group; a group without members is here too
  absl::flat_hash_map<std::string, std::vector<HardLink>> links_to_;
};

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_LINK_GRAPH_H_
