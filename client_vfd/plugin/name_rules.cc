#include "client_vfd/plugin/name_rules.h"

#include <fnmatch.h>

#include <cstdlib>
#include <memory>

namespace h5mirror::vfd {
namespace {

bool MatchesAny(const std::vector<std::string>& patterns, const std::string& real_path) {
  for (const std::string& pattern : patterns) {
    if (MatchesGlob(pattern, real_path)) return true;
  }
  return false;
}

// The root without symlinks, as the file's path is; the root as given where it does not exist.
std::string RealRoot(const std::string& root) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(root.c_str(), nullptr),
                                                         std::free);
  return real ? real.get() : root;
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
  if (real_path.empty() || real_path.front() != '/') return std::nullopt;
  if (!config.include.empty() && !MatchesAny(config.include, real_path)) return std::nullopt;
  if (MatchesAny(config.exclude, real_path)) return std::nullopt;
  if (config.root.empty()) return real_path.substr(1);
  std::string root = RealRoot(config.root);
  if (root != "/") root += '/';
  if (real_path.compare(0, root.size(), root) != 0) return std::nullopt;
  return real_path.substr(root.size());
}

std::optional<std::string> MirrorName(const Config& config, const std::string& real_path,
                                      const std::string& host) {
  if (config.mode == Mode::kOff) return std::nullopt;
  const std::optional<std::string> relative = PathUnderRoot(config, real_path);
  if (!relative || !config.name.empty()) return relative ? std::optional(config.name) : relative;
  return config.root.empty() ? host + "/" + *relative : *relative;
}

}  // namespace h5mirror::vfd
