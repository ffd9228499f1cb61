// The rules that say which files are mirrored, and under which name.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_NAME_RULES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_NAME_RULES_H_

#include <optional>
#include <string>
#include <string_view>

#include "client_vfd/plugin/config/config.h"

namespace h5mirror::vfd {

// fnmatch(3) of one pattern: with a '/' in it against the whole path, else against the base
// name. '*' also matches '/' in whole paths, so that /data/* covers the tree.
bool MatchesGlob(const std::string& pattern, const std::string& real_path);

// The path relative to `root`, or to "/" without one; nullopt: root, include or exclude leave the
// file out. The mode does not matter.
std::optional<std::string> PathUnderRoot(const Config& config, const std::string& real_path);

// The reason why the rules leave a file out, with the name of the key. Empty: they do not.
std::string WhyLeftOut(const Config& config, const std::string& real_path);

// The file's name under the server's root, relative and '/'-separated; nullopt if the rules leave
// it out. `real_path` is absolute and without symlinks. With `name=` it is that; with `root=DIR`
// it is relative to DIR; else HOST/absolute/path.
std::optional<std::string> MirrorName(const Config& config, const std::string& real_path,
                                      const std::string& host);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_NAME_RULES_H_
