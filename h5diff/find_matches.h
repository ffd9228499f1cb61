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

// Whether a value as text is what was asked for: the same text, or the same number ("1" is "1.0").
bool IsSameValue(const std::string& wanted, const std::string& text);

struct Match {
  std::string path;
  std::string object;  // "dataset float64 (10,)", "soft link to /g"
  bool operator==(const Match&) const = default;
};

// In order of paths. A group with several names is looked into under the first of them. With
// wishes links are no match. Soft and external links are not followed. Errors: what HDF5 says.
absl::StatusOr<std::vector<Match>> FindMatches(hid_t file, const PathGlobs& globs,
                                               const std::vector<AttributeWish>& wishes);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_FIND_MATCHES_H_
