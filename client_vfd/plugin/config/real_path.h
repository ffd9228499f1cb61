// Paths of files that may not exist.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_REAL_PATH_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_REAL_PATH_H_

#include <string>

namespace h5mirror::vfd {

// `path` absolute and without symlinks, as realpath(3) would give it if everything on the way were
// there: what exists is resolved, what follows is taken as it is written. Empty: there is no
// current directory.
std::string RealPathOfMissing(const std::string& path);

// Where `path` leads from the directory of `file`, carried over to the directory of `other_file`;
// both paths absolute, `other_file` relative to a root that it must not leave. Empty: it would.
//   ("/data/run/raw.h5", "/data/run.h5", "beam/run.h5") -> "beam/run/raw.h5"
std::string CarryOver(const std::string& path, const std::string& file,
                      const std::string& other_file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_CONFIG_REAL_PATH_H_
