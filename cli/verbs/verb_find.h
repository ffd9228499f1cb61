// h5mirror find, in two programs: the CLI knows its flags, and its helper, which links HDF5, does
// it.
#ifndef H5MIRROR_CLI_VERBS_VERB_FIND_H_
#define H5MIRROR_CLI_VERBS_VERB_FIND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/context.h"

namespace h5mirror::tools {

struct FindOptions {
  std::string glob;                     // see PathGlobs
  std::vector<std::string> places;      // files and directories; empty: all files
  std::vector<std::string> attributes;  // NAME or NAME=VALUE, of which all must be true
  std::string at;                       // a time; empty: now
  bool every_version = false;           // up to that time
};

// Prints, and returns the exit code: kExitFailure where a file could not be looked into.
using FindRunner = std::function<absl::StatusOr<int>(Context&, const FindOptions&)>;

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_VERB_FIND_H_
