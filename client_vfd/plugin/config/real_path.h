// Paths of files that may not exist.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_REAL_PATH_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_REAL_PATH_H_

#include <string>

namespace h5mirror::vfd {

// `path` absolute and without symlinks, as realpath(3) gives it. Unlike there, the last parts of
// the path may be missing: the part that exists is resolved, the rest is taken as it is written.
// Empty: there is no current directory.
std::string RealPathOfMissing(const std::string& path);

// Carries the way from the directory of `file` to `path` over to the directory of `other_file`.
// `path` and `file` are absolute; `other_file` is relative to a root. Empty: the result would leave
// that root.
//   ("/data/run/raw.h5", "/data/run.h5", "beam/run.h5") -> "beam/run/raw.h5"
std::string CarryOver(const std::string& path, const std::string& file,
                      const std::string& other_file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_REAL_PATH_H_
