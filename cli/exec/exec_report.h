// The work of programs under `h5mirror exec`, from the lines that the plugin (<pid>.jsonl) and the
// audit module (<pid>.audit) wrote into the report directory.
#ifndef H5MIRROR_CLI_EXEC_EXEC_REPORT_H_
#define H5MIRROR_CLI_EXEC_EXEC_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cli/output/json.h"

namespace h5mirror::tools {

// One libhdf5 in one process.
struct LibraryUse {
  enum class Mirror { kLoaded, kNever };
  std::string path;
  std::string version;  // empty: it does not say
  std::string program;
  int64_t pid = 0;
  Mirror mirror = Mirror::kNever;  // was the plugin loaded into it?
  bool has_connector = false;      // and the VOL connector?
};

// The plugin's last report of a file in one process.
struct FileUse {
  std::string file;
  std::string name;
  std::string server;
  // As the plugin says it (clean, unchanged, behind, diverged, connecting, mirroring, resyncing,
  // off), or
  //   left_out     no server gets it: `detail` says why; name and server are empty
  //   writer_lost  the process ended without closing it
  //   open         the process still runs and has it open
  std::string state;
  std::string detail;
  std::string way_out;  // a command; empty: none is needed, or `detail` has it
  int64_t cut = 0;
  int64_t version = 0;
  int64_t pid = 0;

  // Both sides were the same when the program closed it.
  bool mirrored() const { return state == "clean" || state == "unchanged"; }
  bool left_out() const { return state == "left_out"; }
  // By a pattern of `exclude`: the user or the site has named it as one that is not to be mirrored.
  // The plugin's reason begins with the key (WhyLeftOut() of
  // client_vfd/plugin/config/name_rules.h).
  bool excluded() const { return left_out() && detail.rfind("exclude=", 0) == 0; }
  bool writer_lost() const { return state == "writer_lost"; }
};

struct ExecReport {
  std::vector<LibraryUse> libraries;
  std::vector<FileUse> files;
  bool wants_connector = false;  // --tick or --all-drivers

  // Every library had the plugin and every file that was written was mirrored or excluded, and
  // something was seen at all: a static HDF5 cannot be seen.
  bool complete() const;
};

// The version of a libhdf5 file, empty where it cannot be told.
using LibraryVersion = absl::FunctionRef<std::string(const std::string& path)>;
using IsRunning = absl::FunctionRef<bool(int64_t pid)>;

// Lines that are torn or unknown are left out. `version_of` is asked for libraries that the
// plugin was never loaded into, `is_running` for processes that left a file open.
ExecReport ReadExecReport(const std::filesystem::path& directory, LibraryVersion version_of,
                          IsRunning is_running);

// The document of `exec --json`.
Json ExecReportToJson(const ExecReport& report, int exit_code);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_EXEC_EXEC_REPORT_H_
