#include "cli/process/libhdf5.h"

#include <stdlib.h>

#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/install_dirs.h"

namespace h5mirror::tools {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kProbeTimeout = absl::Seconds(30);

// Prints h5py's version and the path of the libhdf5 that came into the process with it.
constexpr char kAskH5py[] =
    "import h5py\n"
    "paths = [l.split(None, 5)[5].strip() for l in open('/proc/self/maps') if '/libhdf5' in l]\n"
    "names = [p for p in paths if not any(s in p.rsplit('/', 1)[1]\n"
    "         for s in ('_hl', '_cpp', '_vfd', '_tools', '_fortran'))]\n"
    "print(h5py.__version__)\n"
    "print(names[0] if names else '')\n";

// No driver and no plugin: what is asked for is the library alone.
EnvironmentChanges PlainEnvironment() {
  return {{"HDF5_DRIVER", std::nullopt},      {"HDF5_DRIVER_CONFIG", std::nullopt},
          {"HDF5_PLUGIN_PATH", std::nullopt}, {"HDF5_VOL_CONNECTOR", std::nullopt},
          {"H5MIRROR_REPORT", std::nullopt},  {"LD_AUDIT", std::nullopt}};
}

// A wheel's libhdf5 finds its own dependencies, which lie beside it, only when Python loads it.
std::string LibraryPathFor(const std::string& library) {
  const char* users = getenv("LD_LIBRARY_PATH");
  const std::string directory = fs::path(library).parent_path().string();
  return users == nullptr || *users == '\0' ? directory : StrCat(directory, ":", users);
}

// arguments[1] is the library.
absl::StatusOr<std::string> RunProbe(const std::vector<std::string>& arguments,
                                     EnvironmentChanges changes) {
  H5M_ASSIGN_OR_RETURN(const fs::path probe, FindHelper(kProbeFile));
  changes["LD_LIBRARY_PATH"] = LibraryPathFor(arguments[1]);
  std::vector<std::string> command{probe.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  H5M_ASSIGN_OR_RETURN(const ChildResult result, RunChild(command, changes, kProbeTimeout));
  if (result.code == 0) return result.out;
  // HDF5's error stack is long; what matters is its innermost or our last line.
  const std::string text(absl::StripAsciiWhitespace(result.err));
  return absl::FailedPreconditionError(text.empty() ? StrCat("ended with code ", result.code)
                                                    : text.substr(0, 2000));
}

// libhdf5.so* and libhdf5_serial.so*.
bool IsLibHdf5(const std::string& file_name) {
  return absl::StartsWith(file_name, "libhdf5.so") ||
         absl::StartsWith(file_name, "libhdf5_serial.so") ||
         absl::StartsWith(file_name, "libhdf5_openmpi.so");
}

void AddDirectory(const std::string& directory, std::set<std::string>& paths) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (IsLibHdf5(entry.path().filename().string())) {
      const fs::path real = fs::canonical(entry.path(), error);
      if (!error) paths.insert(real.string());
    }
  }
}

// "	libhdf5.so.310 (libc6,x86-64) => /usr/lib/libhdf5.so.310"
void AddLinkerCache(std::set<std::string>& paths) {
  for (const char* ldconfig : {"/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"}) {
    const absl::StatusOr<ChildResult> cache = RunChild({ldconfig, "-p"}, {}, absl::Seconds(5));
    if (!cache.ok() || cache->code != 0) continue;
    for (absl::string_view line : absl::StrSplit(cache->out, '\n')) {
      const size_t arrow = line.find("=> ");
      if (arrow == absl::string_view::npos) continue;
      const fs::path path{std::string(line.substr(arrow + 3))};
      std::error_code error;
      if (!IsLibHdf5(path.filename().string())) continue;
      const fs::path real = fs::canonical(path, error);
      if (!error) paths.insert(real.string());
    }
    return;
  }
}

}  // namespace

bool TakesPlugins(std::string_view version) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(version), '.');
  int major = 0;
  int minor = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    return false;
  }
  return major > 1 || (major == 1 && minor >= 14);
}

bool LibHdf5::takes_plugins() const { return TakesPlugins(version); }

absl::StatusOr<LibHdf5> LibHdf5At(const std::string& path) {
  absl::StatusOr<std::string> version = RunProbe({"version", path}, PlainEnvironment());
  if (!version.ok()) {
    return absl::Status(version.status().code(), StrCat(path, ": ", version.status().message()));
  }
  return LibHdf5{path, "as named", std::string(absl::StripAsciiWhitespace(*version))};
}

absl::StatusOr<LibHdf5> LibHdf5OfPython(const std::string& python) {
  H5M_ASSIGN_OR_RETURN(const ChildResult result,
                       RunChild({python, "-c", kAskH5py}, PlainEnvironment(), absl::Seconds(60)));
  const std::vector<std::string> lines = absl::StrSplit(result.out, '\n');
  if (result.code != 0 || lines.size() < 2 || lines[1].empty()) {
    return absl::NotFoundError(StrCat(python, " has no h5py"));
  }
  H5M_ASSIGN_OR_RETURN(LibHdf5 library, LibHdf5At(lines[1]));
  library.source = StrCat("h5py ", lines[0], " of ", python);
  return library;
}

std::vector<LibHdf5> LibHdf5OfSystem() {
  std::set<std::string> paths;
  AddLinkerCache(paths);
  const char* extra = getenv("LD_LIBRARY_PATH");
  for (absl::string_view directory :
       absl::StrSplit(extra != nullptr ? extra : "", ':', absl::SkipEmpty())) {
    AddDirectory(std::string(directory), paths);
  }
  std::vector<LibHdf5> result;
  for (const std::string& path : paths) {
    absl::StatusOr<LibHdf5> library = LibHdf5At(path);
    if (!library.ok()) continue;
    library->source = "the system";
    result.push_back(*std::move(library));
  }
  return result;
}

EnvironmentChanges DriverEnvironment(const std::string& plugin_dir, const std::string& config) {
  return {{"HDF5_DRIVER", "h5mirror"},
          {"HDF5_DRIVER_CONFIG", config},
          {"HDF5_PLUGIN_PATH", plugin_dir},
          {"HDF5_VOL_CONNECTOR", std::nullopt},
          {"H5MIRROR_REPORT", std::nullopt}};
}

absl::Status Probe(const std::vector<std::string>& arguments, const EnvironmentChanges& changes) {
  return RunProbe(arguments, changes).status();
}

}  // namespace h5mirror::tools
