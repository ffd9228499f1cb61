#include "cli/process/install_dirs.h"
#include "base/status_macros.h"
#include "base/strings.h"

#include <stdlib.h>

#include <vector>

#include "absl/strings/str_join.h"

// Set by CMakeLists.txt: the library directory of the installation below its prefix, which may be
// "lib/x86_64-linux-gnu".
#ifndef H5MIRROR_INSTALL_LIBDIR
#define H5MIRROR_INSTALL_LIBDIR "lib"
#endif

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

std::string EnvironmentOr(const char* name, const std::string& fallback) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

// The directory above the one that the program lies in.
fs::path Prefix() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path();
}

bool Holds(const fs::path& directory, const std::string& file_name) {
  std::error_code error;
  return fs::exists(directory / file_name, error);
}

absl::StatusOr<fs::path> FirstHolding(const std::vector<fs::path>& directories,
                                      const std::string& file_name, const std::string& way_out) {
  for (const fs::path& directory : directories) {
    std::error_code error;
    if (Holds(directory, file_name)) return fs::absolute(directory, error);
  }
  const std::string list = absl::StrJoin(
      directories, ", ", [](std::string* out, const fs::path& d) { StrAppend(out, d.string()); });
  return absl::NotFoundError(StrCat(file_name, " is not in ", list, "; ", way_out));
}

}  // namespace

absl::StatusOr<fs::path> FindPluginDir(const std::string& wanted) {
  const std::string told = wanted.empty() ? EnvironmentOr("H5MIRROR_PLUGIN_DIR", "") : wanted;
  std::vector<fs::path> directories;
  if (!told.empty()) {
    directories.push_back(told);
  } else {
    for (const char* libdir : {"lib", H5MIRROR_INSTALL_LIBDIR}) {
      for (const char* below : {"h5mirror/plugin", "h5mirror", "hdf5/plugin", ""}) {
        directories.push_back((Prefix() / libdir / below).lexically_normal());
      }
    }
  }
  return FirstHolding(directories, kPluginFile,
                      "name its directory with --plugin-dir or H5MIRROR_PLUGIN_DIR");
}

absl::StatusOr<fs::path> FindHelper(const std::string& file_name) {
  const std::string told = EnvironmentOr("H5MIRROR_LIBEXEC_DIR", "");
  std::vector<fs::path> directories{told.empty() ? Prefix() / "libexec" / "h5mirror"
                                                 : fs::path(told)};
  absl::StatusOr<fs::path> found =
      FirstHolding(directories, file_name, "install h5mirror whole, or set H5MIRROR_LIBEXEC_DIR");
  if (!found.ok()) return found;
  return *found / file_name;
}

absl::StatusOr<fs::path> FindDaemon() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  // Helpers of ours lie in libexec/h5mirror.
  const std::vector<fs::path> directories = {own, Prefix() / "bin", Prefix() / "sbin",
                                             Prefix().parent_path() / "bin",
                                             Prefix().parent_path() / "sbin"};
  H5M_ASSIGN_OR_RETURN(
      const fs::path directory,
      FirstHolding(directories, kDaemonFile,
                   "a file with its history beside it is read with it: install it"));
  return directory / kDaemonFile;
}

}  // namespace h5mirror::tools
