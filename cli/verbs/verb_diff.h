// h5mirror diff, in two programs: the CLI knows its flags, and its helper, which links HDF5, does
// it.
#ifndef H5MIRROR_CLI_VERBS_VERB_DIFF_H_
#define H5MIRROR_CLI_VERBS_VERB_DIFF_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/context.h"

namespace h5mirror::tools {

inline constexpr char kDiffHelperFile[] = "h5mirror-diff";

struct DiffOptions {
  std::string old_version;           // FILE@VERSION, or a local file
  std::string new_version;           // the same; empty: the newest of the same file
  std::vector<std::string> exclude;  // patterns of paths, see PathGlobs
  double absolute_tolerance = 0;
  double relative_tolerance = 0;
  std::string stop_after;  // a duration of ParseDuration(), after which it ends; empty: none
  bool pages = false;
  bool full = false;
  bool stats = false;
};

// Compares, and returns the exit code: kDiffEqual, kDiffDifferent, kDiffTrouble where something
// could not be compared and nothing else differs.
using DiffRunner = std::function<absl::StatusOr<int>(Context&, const DiffOptions&)>;

inline constexpr int kDiffEqual = 0;
inline constexpr int kDiffDifferent = 1;
inline constexpr int kDiffTrouble = 2;

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERB_DIFF_H_
