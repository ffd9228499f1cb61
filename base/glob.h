// Patterns for names with '/' in them, as in a configuration.
#ifndef H5MIRROR_BASE_GLOB_H_
#define H5MIRROR_BASE_GLOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace h5mirror {

// True: the glob matches all of `name`.
//
//   *      any characters but '/', also none
//   **     any characters, also '/', also none; "**/" may stand for nothing: "**/a.h5" takes "a.h5"
//   ?      one character (UTF-8) but '/'
//   [a-z]  one of these bytes; [!a-z] one of all others but '/'
//   \x     x itself
bool GlobMatches(std::string_view glob, std::string_view name);

// True: at least one of the globs matches.
bool AnyGlobMatches(const std::vector<std::string>& globs, std::string_view name);

// kInvalidArgument: empty, a '/' at its start or end, a '[' without its ']', a '\' at the end.
absl::Status CheckGlob(std::string_view glob);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_GLOB_H_
