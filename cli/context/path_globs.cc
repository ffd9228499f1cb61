#include "cli/context/path_globs.h"

#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {

absl::StatusOr<PathGlobs> PathGlobs::Parse(const std::vector<std::string>& patterns) {
  PathGlobs result;
  for (const std::string& pattern : patterns) {
    if (!pattern.starts_with('/') && !pattern.starts_with("**")) {
      return absl::InvalidArgumentError(
          StrCat("'", pattern,
                 "' is no pattern of paths: begin with the root, /, or with **/ for any depth"));
    }
    std::string glob = pattern.starts_with('/') ? pattern.substr(1) : pattern;
    const absl::Status checked = CheckGlob(glob);
    if (!checked.ok()) {
      return absl::InvalidArgumentError(
          StrCat("'", pattern, "' is no pattern of paths: ", ToStd(checked.message())));
    }
    result.patterns_.push_back(pattern);
    result.globs_.push_back(std::move(glob));
  }
  return result;
}

bool PathGlobs::Matches(std::string_view path) const {
  return path.size() > 1 && AnyGlobMatches(globs_, path.substr(1));
}

bool PathGlobs::Covers(std::string_view path) const {
  if (globs_.empty() || path.size() <= 1) return false;
  for (size_t end = path.find('/', 1); end != std::string_view::npos;
       end = path.find('/', end + 1)) {
    if (Matches(path.substr(0, end))) return true;
  }
  return Matches(path);
}

}  // namespace h5mirror::tools
