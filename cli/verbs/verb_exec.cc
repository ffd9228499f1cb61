// h5mirror exec: runs a program mirrored and says at the end what was.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "base/cli_checks.h"
#include "base/errno_status.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/exec/exec_environment.h"
#include "cli/exec/exec_lost.h"
#include "cli/exec/exec_report.h"
#include "cli/exec/exec_summary.h"
#include "cli/process/child.h"
#include "cli/process/install_dirs.h"
#include "cli/process/libhdf5.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  bool strict = false;
  bool quiet = false;
  std::string config;
  std::string root;
  std::string report;
  std::string tick;
  bool all_drivers = false;
};

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// The directory that plugin and audit module write to; removed with its content. Inside
// another `h5mirror exec` its files are handed on to that one first.
class ReportDir {
 public:
  static absl::StatusOr<ReportDir> Create() {
    std::string path = (std::filesystem::temp_directory_path() / "h5mirror-exec-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return ErrnoToStatus(errno, StrCat("make a directory ", path));
    }
    return ReportDir(path);
  }
  ReportDir(ReportDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ReportDir& operator=(ReportDir&&) = delete;
  ~ReportDir() {
    if (path_.empty()) return;
    std::error_code error;
    const std::string outer = FromEnvironment("H5MIRROR_REPORT");
    if (!outer.empty()) {
      std::filesystem::copy(path_, outer, std::filesystem::copy_options::skip_existing, error);
    }
    std::filesystem::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }

 private:
  explicit ReportDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::string VersionOf(const std::string& library) {
  const absl::StatusOr<LibHdf5> found = LibHdf5At(library);
  return found.ok() ? found->version : "";
}

// A zombie that nobody has waited for has ended.
bool IsRunning(int64_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < stat.size() &&
         std::string_view("ZX").find(stat[name_end + 2]) == std::string_view::npos;
}

// The report, and the servers' knowledge of files that were left open.
ExecReport MakeReport(const Context& context, const std::string& directory,
                      const std::string& config) {
  // A server that is away must not delay the program's end for longer.
  constexpr double kTimeoutMaxSeconds = 3;
  ExecReport report = ReadExecReport(directory, VersionOf, IsRunning);
  const double timeout = std::min(context.flags().timeout_seconds, kTimeoutMaxSeconds);
  AskAboutLostFiles({config, context.flags().client, absl::Seconds(timeout)}, report);
  return report;
}

absl::Status WriteReport(const std::string& path, const Json& json) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << Dump(json) << "\n";
  file.close();
  if (!file) return absl::InternalError(StrCat("write ", path, ": not written"));
  return absl::OkStatus();
}

// As the shell does.
int CodeOfFailedStart(const absl::Status& status) { return absl::IsNotFound(status) ? 127 : 126; }

absl::StatusOr<int> RunExec(Context& context, const Options& options,
                            const std::vector<std::string>& program) {
  if (program.empty()) {
    return absl::InvalidArgumentError(
        "exec: no program; write h5mirror exec [FLAGS] PROGRAM ARGUMENTS");
  }
  ExecEnvironmentRequest request;
  request.config = options.config;
  request.root = options.root;
  request.client = context.flags().client;
  request.all_drivers = options.all_drivers;
  if (!options.tick.empty()) {
    H5M_ASSIGN_OR_RETURN(request.tick, ParseDuration(options.tick));
  }
  // Found before the program starts: HDF5 2.0 crashes on a driver that it cannot load.
  H5M_ASSIGN_OR_RETURN(const auto plugin_dir, FindPluginDir(context.flags().plugin_dir));
  H5M_ASSIGN_OR_RETURN(const auto audit_module, FindHelper(kAuditFile));
  request.plugin_dir = plugin_dir.string();
  request.audit_module = audit_module.string();
  H5M_ASSIGN_OR_RETURN(const ReportDir report_dir, ReportDir::Create());
  request.report_dir = report_dir.path();
  H5M_ASSIGN_OR_RETURN(const EnvironmentChanges changes, ExecEnvironment(request, FromEnvironment));
  const absl::StatusOr<int> ended = RunInOurPlace(program, changes);
  if (!ended.ok()) {
    context.Note(ToStd(ended.status().message()));
    return CodeOfFailedStart(ended.status());
  }
  int code = *ended;
  ExecReport report =
      MakeReport(context, report_dir.path(), changes.at("HDF5_DRIVER_CONFIG").value_or(""));
  report.wants_connector = request.wants_connector();
  if (options.strict && code == 0 && !report.complete()) code = kExitNotMirrored;
  const Json json = ExecReportToJson(report, code);
  H5M_RETURN_IF_ERROR(WriteReport(options.report, json));
  if (context.json()) {
    context.streams().err << DumpLine(json) << "\n";  // Standard output is the program's.
  } else if (!options.quiet) {
    Summarize(context, report);
  }
  return code;
}

}  // namespace

void AddExec(CLI::App& app, Context& context, const std::vector<std::string>& program,
             Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "exec", "Run a program mirrored: h5mirror exec [FLAGS] [--] PROGRAM ARGUMENTS");
  verb->add_flag("--strict", options->strict,
                 "exit with 7 if the program ended well but not all of its HDF5 was mirrored");
  verb->add_option("--config", options->config,
                   "the driver's config, 'key=value;key=value' or @FILE; flags win over it");
  verb->add_option("--root", options->root,
                   "names are relative to this directory; files outside of it are not mirrored");
  verb->add_option("--tick", options->tick,
                   "flush each file that the program has changed, once in this time (10ms to 24h), "
                   "so that readers see it")
      ->check(DurationFrom(absl::Milliseconds(10), absl::Hours(24)));
  verb->add_flag("--all-drivers", options->all_drivers,
                 "mirror also files for which the program names sec2, stdio, direct, log, or core "
                 "with a backing store");
  verb->add_option("--report", options->report, "write the summary as JSON to this file");
  verb->add_flag("-q,--quiet", options->quiet, "no summary");
  verb->footer("With --json the summary is one line of JSON on standard error.");
  verb->callback([&context, &action, &program, options] {
    action = [&context, &program, options] { return RunExec(context, *options, program); };
  });
}

}  // namespace h5mirror::tools
