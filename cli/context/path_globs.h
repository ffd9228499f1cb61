// Patterns of paths in an HDF5 file, on the command line: "/scratch", "/run*/raw/**", "**/tmp".
#ifndef H5MIRROR_CLI_CONTEXT_PATH_GLOBS_H_
#define H5MIRROR_CLI_CONTEXT_PATH_GLOBS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::tools {

// Patterns are those of base/glob.h, from the root of the file. The root itself matches none.
class PathGlobs {
 public:
  // kInvalidArgument: one begins with neither "/" nor "**", or is no pattern.
  static absl::StatusOr<PathGlobs> Parse(const std::vector<std::string>& patterns);

  bool empty() const { return globs_.empty(); }
  // As they were given.
  const std::vector<std::string>& patterns() const { return patterns_; }

  // `path` begins with '/' and has no empty components. True: a pattern matches it.
  bool Matches(std::string_view path) const;
  // True: a pattern matches the path, or a group above it.
  bool Covers(std::string_view path) const;
  // True: a pattern may match objects below this group; "" is the root.
  bool MayLeadOn(std::string_view path) const;

 private:
  std::vector<std::string> patterns_;
  std::vector<std::string> globs_;  // without the first '/'
};

// For the help of flags that take one.
inline constexpr char kPathGlobHelp[] =
    "a pattern of paths, such as /scratch/* or **/tmp: * and ? match anything but /, ** also /";

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_PATH_GLOBS_H_
