// h5mirror doctor: is everything there that mirroring needs, and does it work?
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/output/text.h"
#include "cli/process/install_dirs.h"
#include "cli/process/libhdf5.h"
#include "cli/verbs/archive_text.h"
#include "cli/verbs/doctor_config.h"
#include "cli/verbs/doctor_http.h"
#include "cli/verbs/doctor_report.h"
#include "cli/verbs/scratch_check.h"
#include "cli/verbs/standing_report.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

constexpr int64_t kFreeBytesLow = int64_t{1} << 30;
constexpr absl::Duration kSkewMax = absl::Seconds(5);

struct Options {
  std::string file;
  std::string python = "python3";
  std::vector<std::string> libraries;
  std::string http;  // URL; empty: not checked
  bool no_scratch = false;
};

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// One examination. Later checks use what earlier ones found and are left out without it.
class Doctor {
 public:
  Doctor(Context& context, const Options& options)
      : context_(context), options_(options), report_(context) {}

  int Run() {
    CheckPlugin();
    FindLibraries();
    for (const LibHdf5& library : libraries_) CheckLibrary(library);
    CheckConfigFiles();
    if (!options_.file.empty()) ReadFileArg();
    CheckServer();
    if (!options_.http.empty()) CheckHttp();
    if (!options_.no_scratch) CheckScratch();
    if (client_ != nullptr && !file_.name.empty()) CheckFile();
    return report_.Finish();
  }

 private:
  void CheckPlugin() {
    const auto found = FindPluginDir(context_.flags().plugin_dir);
    if (!found.ok()) {
      report_.Fail("plugin", std::string(found.status().message()), "");
      return;
    }
    plugin_dir_ = found->string();
    report_.Ok("plugin", StrCat(plugin_dir_, "/", kPluginFile));
    CheckEnvironment();
    CheckConnector();
  }

  // A file of HDF5_PLUGIN_PATH's directories: the first of these that holds it, or "".
  static std::string PluginPathWith(const char* file) {
    for (absl::string_view directory :
         absl::StrSplit(FromEnvironment("HDF5_PLUGIN_PATH"), ':', absl::SkipEmpty())) {
      std::error_code error;
      if (std::filesystem::exists(std::filesystem::path(std::string(directory)) / file, error)) {
        return std::string(directory);
      }
    }
    return "";
  }

  // Whether programs find the VOL connector that they are told to load.
  void CheckConnector() {
    std::error_code error;
    has_connector_ =
        std::filesystem::exists(std::filesystem::path(plugin_dir_) / kConnectorFile, error);
    if (!has_connector_) {
      report_.Warn("connector",
                   StrCat(plugin_dir_, " holds no ", kConnectorFile,
                          ": exec's --tick and --all-drivers do nothing"),
                   "install h5mirror anew");
    }
    const std::string told = FromEnvironment("HDF5_VOL_CONNECTOR");
    if (told != "h5mirror" && !absl::StartsWith(told, "h5mirror ")) return;
    const std::string directory = PluginPathWith(kConnectorFile);
    if (!directory.empty()) {
      report_.Ok("connector",
                 StrCat("HDF5_VOL_CONNECTOR=", told, ", HDF5_PLUGIN_PATH holds ", directory));
      return;
    }
    report_.Fail(
        "connector",
        StrCat("HDF5_VOL_CONNECTOR=", told, ", but HDF5_PLUGIN_PATH does not hold ", kConnectorFile,
               ": HDF5 2.0 crashes at its first file, HDF5 1.14 prints errors and goes on "
               "without ticks"),
        has_connector_ ? StrCat("export HDF5_PLUGIN_PATH=", plugin_dir_)
                       : "unset HDF5_VOL_CONNECTOR");
  }

  // A driver that is named and not found makes HDF5 2.0 crash at its first call.
  void CheckEnvironment() {
    if (FromEnvironment("HDF5_DRIVER") != "h5mirror") {
      report_.Ok("environment",
                 "HDF5_DRIVER is not h5mirror: programs are mirrored under "
                 "h5mirror exec only");
      return;
    }
    const std::string directory = PluginPathWith(kPluginFile);
    if (!directory.empty()) {
      report_.Ok("environment", StrCat("HDF5_DRIVER=h5mirror, HDF5_PLUGIN_PATH holds ", directory));
      return;
    }
    report_.Fail(
        "environment",
        "HDF5_DRIVER=h5mirror, but HDF5_PLUGIN_PATH does not hold the plugin: HDF5 fails at "
        "its first call (h5py: ValueError: Not a datatype)",
        StrCat("export HDF5_PLUGIN_PATH=", plugin_dir_));
  }

  void FindLibraries() {
    for (const std::string& path : options_.libraries) {
      absl::StatusOr<LibHdf5> library = LibHdf5At(path);
      if (library.ok()) {
        libraries_.push_back(*std::move(library));
      } else {
        report_.Fail("libhdf5", std::string(library.status().message()), "name another --libhdf5");
      }
    }
    absl::StatusOr<LibHdf5> python = LibHdf5OfPython(options_.python);
    if (python.ok()) {
      libraries_.push_back(*std::move(python));
    } else {
      report_.Ok("python", StrCat(python.status().message(), "; --python names another"));
    }
    for (LibHdf5& library : LibHdf5OfSystem()) libraries_.push_back(std::move(library));
    if (libraries_.empty()) {
      report_.Warn("libhdf5", "no shared libhdf5 was found",
                   "name the one that your programs use with --libhdf5 PATH");
    }
  }

  void CheckLibrary(const LibHdf5& library) {
    const std::string what =
        StrCat(library.version, " of ", library.source, " (", library.path, ")");
    if (!library.takes_plugins()) {
      report_.Warn("libhdf5", StrCat(what, ": loads no plugins, its programs are NOT mirrored"),
                   "use HDF5 >= 1.14 there");
      return;
    }
    if (plugin_dir_.empty()) return;
    const absl::Status loaded = Probe({"plugin", library.path}, DriverEnvironment(plugin_dir_, ""));
    if (!loaded.ok()) {
      report_.Fail("libhdf5", StrCat(what, ": does not load the plugin: ", loaded.message()),
                   StrCat("see ldd ", plugin_dir_, "/", kPluginFile));
      return;
    }
    const absl::Status connected =
        has_connector_ ? Probe({"connector", library.path}, DriverEnvironment(plugin_dir_, ""))
                       : absl::OkStatus();
    if (!connected.ok()) {
      report_.Warn(
          "libhdf5",
          StrCat(what, ": loads the plugin, and not the VOL connector: ", connected.message()),
          StrCat("run its programs without --tick and --all-drivers, and see ldd ", plugin_dir_,
                 "/", kConnectorFile));
    } else {
      report_.Ok("libhdf5", StrCat(what, has_connector_ ? ": loads the plugin and the VOL connector"
                                                        : ": loads the plugin"));
    }
    if (usable_ == nullptr) usable_ = &library;
  }

  void CheckConfigFiles() {
    std::vector<std::string> found;
    for (const std::string& path :
         {StrCat(FromEnvironment("HOME"), "/.config/h5mirror/client.toml"),
          std::string("/etc/h5mirror/client.toml")}) {
      std::error_code error;
      if (std::filesystem::exists(path, error)) found.push_back(path);
    }
    const absl::StatusOr<rpc::ClientOptions> options = context_.Options();
    if (!options.ok()) {
      report_.Fail("config", std::string(options.status().message()), "");
    } else {
      report_.Ok("config", found.empty() ? "no client.toml: flags, environment and defaults count"
                                         : absl::StrJoin(found, ", "));
      CheckConfig(options->server);
    }
  }

  void ReadFileArg() {
    const absl::StatusOr<FileArg> file =
        ResolveFileArg(options_.file, context_.flags().client.server);
    if (!file.ok()) {
      report_.Fail("file", std::string(file.status().message()), "");
      return;
    }
    file_ = *file;
  }

  // That of the file's record, if there is one.
  void CheckServer() {
    const absl::StatusOr<rpc::Client*> client = context_.Connect(file_);
    if (!client.ok()) {
      report_.Fail("server", std::string(client.status().message()),
                   "start h5mirrord there, or name another with --server");
      return;
    }
    const absl::StatusOr<v1::GetServerResponse> server = (*client)->GetServer();
    if (!server.ok()) {
      report_.Fail("server", std::string(server.status().message()), "");
      return;
    }
    client_ = *client;
    const rpc::ClientOptions& options = client_->options();
    report_.Ok("server", StrCat(options.server, ": h5mirrord ", server->server_version(), ", ",
                                options.ca_pem.empty()
                                    ? options.loopback ? "plain text on loopback" : "PLAIN TEXT"
                                    : "TLS"));
    CheckProtocol(*server);
    CheckRights(*server);
    CheckSpace(*server);
    CheckArchive();
  }

  // With the same authority as the server's other door: it is one certificate.
  void CheckHttp() {
    const absl::StatusOr<rpc::ClientOptions> options = context_.Options();
    report_.Add(CheckHttpDoor(options_.http, options.ok() ? options->ca_pem : ""));
  }

  // Checks the configuration of programs that are mirrored without `h5mirror exec`.
  void CheckConfig(const std::string& server) {
    const std::string config = FromEnvironment("HDF5_DRIVER_CONFIG");
    if (FromEnvironment("HDF5_DRIVER") != "h5mirror" || config.empty()) return;
    report_.Add(CheckDriverConfig(config, server));
  }

  void CheckProtocol(const v1::GetServerResponse& server) {
    const auto& theirs = server.protocol();
    const std::string both = StrCat("ours ", rpc::kProtocolOldest, "-", rpc::kProtocolNewest,
                                    ", the server's ", theirs.oldest(), "-", theirs.newest());
    if (theirs.newest() < rpc::kProtocolOldest || theirs.oldest() > rpc::kProtocolNewest) {
      report_.Fail("protocol", StrCat("no common version: ", both), "update the older side");
    } else {
      report_.Ok("protocol", both);
    }
  }

  void CheckRights(const v1::GetServerResponse& server) {
    const std::string who =
        server.verified_user().empty() ? "no name is asked for" : server.verified_user();
    const std::string rights = absl::StrJoin(server.rights(), ", ");
    may_write_ = absl::StrContains(rights, "write");
    if (may_write_) {
      // Tables of rights may leave fewer to a single file.
      report_.Ok("rights", StrCat(who, ": at most ", rights));
    } else {
      report_.Fail("rights", StrCat(who, ": ", rights.empty() ? "none" : rights),
                   "mirroring needs `write`: ask the server's administrator for it");
    }
  }

  void CheckSpace(const v1::GetServerResponse& server) {
    if (server.root().empty()) return;  // The server does not tell this user.
    const std::string free =
        StrCat(HumanBytes(static_cast<uint64_t>(server.free_bytes())), " free in ", server.root());
    if (server.free_bytes() < kFreeBytesLow) {
      report_.Warn("space", free, "make room on the server");
    } else {
      report_.Ok("space", free);
    }
    const absl::Time started = FromProto(server.start_time());
    if (started != absl::InfinitePast() && started > absl::Now() + kSkewMax) {
      report_.Warn("clock",
                   StrCat("the server says that it started ", HumanDuration(started - absl::Now()),
                          " from now"),
                   "set both clocks, e.g. by NTP");
    }
  }

  void CheckArchive() {
    const ArchiveState archive = ArchiveOf(client_->options());
    if (!archive) return;
    const std::string text = ArchiveText(*archive, context_.streams().zone);
    if (archive->error().empty()) {
      report_.Ok("archive", text);
    } else {
      report_.Warn("archive", text,
                   "bring it back; until then writers go on, and old versions that are there "
                   "cannot be read");
    }
  }

  void CheckScratch() {
    if (client_ == nullptr || usable_ == nullptr || !may_write_) {
      report_.Warn("scratch", "no file was written through the plugin",
                   "it takes a libhdf5 >= 1.14 that loads it, and a server that may be written");
      return;
    }
    const absl::StatusOr<ScratchResult> result =
        CheckScratchFile(context_, *client_, *usable_, plugin_dir_);
    if (!result.ok()) {
      report_.Fail("scratch", std::string(result.status().message()), "");
      return;
    }
    report_.Ok("scratch",
               StrCat(result->name, "@", result->version, " written by libhdf5 ", usable_->version,
                      ", read back and found equal on the server, ", HumanDuration(result->took)));
    const std::string skew = HumanDuration(result->clock_skew);
    if (result->clock_skew > kSkewMax || result->clock_skew < -kSkewMax) {
      report_.Warn("clock", StrCat("the server's clock is off by ", skew, " from ours"),
                   "set both clocks, e.g. by NTP");
    } else {
      report_.Ok("clock", "the server's agrees with ours");
    }
  }

  void CheckFile() {
    v1::GetFileRequest request;
    request.set_name(file_.name);
    const absl::StatusOr<v1::FileStatus> status = client_->GetFile(request, absl::Seconds(30));
    if (!status.ok() && !absl::IsNotFound(status.status())) {
      report_.Fail("file", std::string(status.status().message()), "");
    } else if (file_.record.has_value()) {
      CheckLocalFile(status.ok() ? std::optional(*status) : std::nullopt);
    } else if (status.ok()) {
      report_.Ok("file", StrCat(file_.name, ": version ", status->newest_version().version(), ", ",
                                status->version_count(), " versions"));
    } else {
      report_.Fail("file", std::string(status.status().message()),
                   "a local path needs its record beside it (X.h5.h5m)");
    }
  }

  void CheckLocalFile(const std::optional<v1::FileStatus>& status) {
    const absl::StatusOr<FileStat> stat = StatFile(file_.local);
    const StandingReport standing = JudgeStanding(file_.local.string(), *file_.record,
                                                  stat.ok() ? std::optional(*stat) : std::nullopt,
                                                  status, client_->options().server);
    const Health health =
        standing.standing == Standing::kLevel || standing.standing == Standing::kBeingWritten
            ? Health::kOk
        : standing.standing == Standing::kBehind ? Health::kWarn
                                                 : Health::kFail;
    report_.Add(
        {health, "file", StrCat(file_.local.string(), ": ", standing.detail), standing.way_out});
  }

  Context& context_;
  const Options& options_;
  DoctorReport report_;
  std::string plugin_dir_;  // empty: not found
  bool has_connector_ = false;
  std::vector<LibHdf5> libraries_;
  const LibHdf5* usable_ = nullptr;  // the first that loads the plugin
  rpc::Client* client_ = nullptr;    // null: the server did not answer
  bool may_write_ = false;
  FileArg file_;
};

}  // namespace

void AddDoctor(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "doctor", "Check plugin, HDF5 libraries, config, server, and the whole way once");
  verb->add_option("FILE", options->file, std::string("also this file: ") + kFileHelp);
  verb->add_option("--python", options->python, "the Python whose h5py is looked at")
      ->capture_default_str();
  verb->add_option("--libhdf5", options->libraries, "HDF5 libraries to try, by path");
  verb->add_option("--http", options->http,
                   "also the server's http_listen at this URL, as https://HOST:PORT");
  verb->add_flag("--no-scratch", options->no_scratch,
                 "write no scratch file (it is kept as h5mirror-doctor/HOST-USER.h5)");
  verb->footer("One line a check: OK, WARN or FAIL, with the way out. Exit code 1 if one failed.");
  verb->callback([&context, &action, options] {
    action = [&context, options]() -> absl::StatusOr<int> {
      return Doctor(context, *options).Run();
    };
  });
}

}  // namespace h5mirror::tools
