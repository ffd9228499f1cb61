// What programs under `h5mirror exec` did, from the lines that the plugin (<pid>.jsonl) and the
// audit module (<pid>.audit) wrote into the report directory.
#ifndef H5MIRROR_TOOLS_EXEC_REPORT_H_
#define H5MIRROR_TOOLS_EXEC_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tools/json.h"

namespace h5mirror::tools {

// One libhdf5 in one process.
struct LibraryUse {
  enum class Mirror { kLoaded, kNever };
  std::string path;
  std::string version;  // empty: it does not say
  std::string program;
  int64_t pid = 0;
  Mirror mirror = Mirror::kNever;  // was the plugin loaded into it?
};

// The last that the plugin said about a file in one process.
struct FileUse {
  std::string file;
  std::string name;
  std::string server;
  std::string state;  // clean, unchanged, behind, diverged, mirroring, connecting, off
  std::string detail;
  int64_t cut = 0;
  int64_t version = 0;
  int64_t pid = 0;

  // Both sides were the same when the program closed it.
  bool mirrored() const { return state == "clean" || state == "unchanged"; }
};

struct ExecReport {
  std::vector<LibraryUse> libraries;
  std::vector<FileUse> files;

  // Every library had the plugin and every file was mirrored, and something was seen at all: a
  // static HDF5 cannot be seen.
  bool complete() const;
};

// The version of a libhdf5 file, empty where it cannot be told.
using LibraryVersion = absl::FunctionRef<std::string(const std::string& path)>;

// Lines that are torn or unknown are left out. `version_of` is asked for libraries that the
// plugin was never loaded into.
ExecReport ReadExecReport(const std::filesystem::path& directory, LibraryVersion version_of);

// The document of `exec --json`.
Json ExecReportToJson(const ExecReport& report, int exit_code);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_EXEC_REPORT_H_
