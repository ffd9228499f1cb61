// Where the parts of an installation (or of a build tree) lie, seen from the program.
#ifndef H5MIRROR_CLI_PROCESS_INSTALL_DIRS_H_
#define H5MIRROR_CLI_PROCESS_INSTALL_DIRS_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace h5mirror::tools {

inline constexpr char kPluginFile[] = "libhdf5_vfd_h5mirror.so";
inline constexpr char kConnectorFile[] = "libhdf5_vol_h5mirror.so";  // beside the plugin
inline constexpr char kAuditFile[] = "h5mirror-exec-audit.so";
inline constexpr char kProbeFile[] = "hdf5-probe";
inline constexpr char kDaemonFile[] = "h5mirrord";

// The directory that holds the plugin: `wanted` (--plugin-dir) if it is not empty, else
// H5MIRROR_PLUGIN_DIR, else the library directory beside the program's.
// kNotFound names where it was looked for.
absl::StatusOr<std::filesystem::path> FindPluginDir(const std::string& wanted);

// A helper of ours in ../libexec/h5mirror beside the program's directory, or in
// H5MIRROR_LIBEXEC_DIR. kNotFound names where it was looked for.
absl::StatusOr<std::filesystem::path> FindHelper(const std::string& file_name);

// h5mirrord: beside the program, or where an installation has its programs. kNotFound.
absl::StatusOr<std::filesystem::path> FindDaemon();

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_PROCESS_INSTALL_DIRS_H_
