// The objects of one file that match a pattern of paths.
#ifndef H5MIRROR_H5DIFF_FIND_MATCHES_H_
#define H5MIRROR_H5DIFF_FIND_MATCHES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/path_globs.h"
#include "hdf5/handle.h"

namespace h5mirror::tools {

struct AttributeWish {
  std::string name;
  std::optional<std::string> value;  // unset: any
};

// "NAME" or "NAME=VALUE"; the name ends at the first '='. kInvalidArgument: the name is empty.
absl::StatusOr<AttributeWish> ParseAttributeWish(std::string_view text);

// Whether two texts are the same number: "1" is "1.0". Whole numbers are compared as such.
bool IsSameNumber(const std::string& one, const std::string& other);

struct Match {
  std::string path;
  std::string object;  // "dataset float64 (10,)", "soft link to /g"
  bool operator==(const Match&) const = default;
};

struct Matches {
  std::vector<Match> found;
  // Objects that could not be opened, "/g/x: why": the first hundred.
  std::vector<std::string> failed;
};

// Group by group, in the order of names. A group that a pattern leads into by several names of the
// same depth, or of any depth behind "**", is looked into under the first of them. With wishes
// links are no match. Soft and external links are not followed. Errors: the root cannot be opened.
absl::StatusOr<Matches> FindMatches(hid_t file, const PathGlobs& globs,
                                    const std::vector<AttributeWish>& wishes);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_FIND_MATCHES_H_
