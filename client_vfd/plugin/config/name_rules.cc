#include "client_vfd/plugin/config/name_rules.h"

#include <fnmatch.h>

#include <cstdlib>
#include <memory>

namespace h5mirror::vfd {
namespace {

// The first pattern that matches; null: none does.
const std::string* FindMatch(const std::vector<std::string>& patterns,
                             const std::string& real_path) {
  for (const std::string& pattern : patterns) {
    if (MatchesGlob(pattern, real_path)) return &pattern;
  }
  return nullptr;
}

std::string Joined(const std::vector<std::string>& patterns) {
  std::string list;
  for (const std::string& pattern : patterns) list += (list.empty() ? "" : ",") + pattern;
  return list;
}

// The root without symlinks, as the file's path is; the root as given where it does not exist.
std::string RealRoot(const std::string& root) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(root.c_str(), nullptr),
                                                         std::free);
  return real ? real.get() : root;
}

// Under the rules of root, include and exclude: the path relative to the root, or why it has none.
struct Placed {
  std::optional<std::string> relative;
  std::string why_not;
};
Placed Place(const Config& config, const std::string& real_path) {
  if (real_path.empty() || real_path.front() != '/') return {std::nullopt, "it has no path"};
  if (!config.include.empty() && FindMatch(config.include, real_path) == nullptr) {
    return {std::nullopt, "include=" + Joined(config.include) + " does not take it"};
  }
  if (const std::string* pattern = FindMatch(config.exclude, real_path)) {
    return {std::nullopt, "exclude=" + *pattern + " leaves it out"};
  }
  if (config.root.empty()) return {real_path.substr(1), ""};
  std::string root = RealRoot(config.root);
  if (root != "/") root += '/';
  if (real_path.compare(0, root.size(), root) != 0) {
    return {std::nullopt, "it lies outside of root=" + config.root};
  }
  return {real_path.substr(root.size()), ""};
}

}  // namespace

bool MatchesGlob(const std::string& pattern, const std::string& real_path) {
  if (pattern.find('/') != std::string::npos) {
    return fnmatch(pattern.c_str(), real_path.c_str(), 0) == 0;
  }
  const size_t slash = real_path.rfind('/');
  const char* base = real_path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  return fnmatch(pattern.c_str(), base, 0) == 0;
}

std::optional<std::string> PathUnderRoot(const Config& config, const std::string& real_path) {
  return Place(config, real_path).relative;
}

std::string WhyLeftOut(const Config& config, const std::string& real_path) {
  if (config.mode == Mode::kOff) return "mode=off mirrors nothing";
  return Place(config, real_path).why_not;
}

std::optional<std::string> MirrorName(const Config& config, const std::string& real_path,
                                      const std::string& host) {
  if (config.mode == Mode::kOff) return std::nullopt;
  const std::optional<std::string> relative = PathUnderRoot(config, real_path);
  if (!relative || !config.name.empty()) return relative ? std::optional(config.name) : relative;
  return config.root.empty() ? host + "/" + *relative : *relative;
}

}  // namespace h5mirror::vfd
