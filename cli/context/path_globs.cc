#include "cli/context/path_globs.h"

#include <algorithm>

#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

std::string_view TakePart(std::string_view* rest) {
  const std::string_view part = rest->substr(0, rest->find('/'));
  rest->remove_prefix(std::min(rest->size(), part.size() + 1));
  return part;
}

// Part by part, up to the first one with "**", which takes any.
bool LeadsOn(std::string_view glob, std::string_view path) {
  path.remove_prefix(std::min<size_t>(path.size(), 1));
  while (!path.empty()) {
    const std::string pattern(TakePart(&glob));
    if (pattern.find("**") != std::string::npos) return true;
    if (!GlobMatches(pattern, TakePart(&path)) || glob.empty()) return false;
  }
  return true;
}

}  // namespace

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

bool PathGlobs::MayLeadOn(std::string_view path) const {
  return std::any_of(globs_.begin(), globs_.end(),
                     [&](const std::string& glob) { return LeadsOn(glob, path); });
}

}  // namespace h5mirror::tools
