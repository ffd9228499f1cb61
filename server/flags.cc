#include "server/flags.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/cli_checks.h"
#include "base/cli_help.h"
#include "base/cli_words.h"
#include "base/glob.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/version.h"

namespace h5mirror::server {
namespace {

constexpr char kDefaultConfig[] = "/etc/h5mirror/h5mirrord.toml";
constexpr char kDefaultTokens[] = "/etc/h5mirror/tokens";

constexpr char kDescription[] =
    "h5mirrord keeps live copies and all versions of HDF5 files below one directory.\n\n"
    "  h5mirrord --root /data                      this machine only: 127.0.0.1:7447\n"
    "  h5mirrord --root /data --listen unix:/run/h5mirror/sock\n"
    "                                              local users; others through ssh -L\n"
    "  h5mirrord init && h5mirrord --root /data --listen 0.0.0.0:7447\n"
    "                                              other machines: TLS and tokens";

constexpr char kFooter[] =
    "Every setting is also a key of the configuration file (`lease_ttl = \"10s\"`) and an\n"
    "environment variable (H5MIRRORD_LEASE_TTL). A flag wins over the environment, that over the\n"
    "file. Sizes: 512MiB, 1GiB. Times: 500ms, 10s, 2m.\n\n"
    "Signals: TERM and INT finish the work in hand and stop; a second one stops at once. HUP\n"
    "reopens log files, and reads certificates, tokens, keys and all tables but [[retention]]\n"
    "again.\n\n"
    "Exit codes: 0 stopped cleanly; 1 failed; 2 command line or configuration; 3 no such root;\n"
    "4 root cannot be written; 5 root served by another process or of a newer format; 6 cannot\n"
    "listen; 7 stopped before the work in hand was done; 8 fenced off from the root;\n"
    "9 given up by the other servers of its cluster.";

std::string EnvironmentName(std::string_view key) {
  return "H5MIRRORD_" + absl::AsciiStrToUpper(ToAbsl(key));
}

using FlagValues = std::map<std::string, std::vector<std::string>, std::less<>>;

void AddSettings(CLI::App& app, FlagValues& values) {
  for (const ConfigKey& key : ConfigKeys()) {
    app.add_option(SettingFlag(key.name), values[std::string(key.name)], std::string(key.help))
        ->type_name(std::string(key.value_name))
        ->type_size(1)
        ->allow_extra_args(false)
        ->expected(1)
        ->multi_option_policy(key.value_name == "ADDRESS,..." ? CLI::MultiOptionPolicy::TakeAll
                                                              : CLI::MultiOptionPolicy::TakeLast)
        ->group("Settings");
  }
}

std::vector<Setting> FlagSettings(const FlagValues& values) {
  std::vector<Setting> settings;
  for (const auto& [key, given] : values) {
    if (!given.empty()) settings.push_back({key, absl::StrJoin(given, ","), SettingFlag(key)});
  }
  return settings;
}

// False: there is no default file. One that this user may not look at counts as there: without it
// the server would run without its tokens and tables.
bool HasDefaultConfig() {
  return access(kDefaultConfig, R_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

// Sets `config_file` to the file that was read, if it is empty.
absl::StatusOr<std::vector<Setting>> CollectSettings(std::string& config_file,
                                                     const FlagValues& values) {
  std::vector<Setting> settings;
  if (config_file.empty()) {
    const char* from_environment = std::getenv("H5MIRRORD_CONFIG");
    if (from_environment != nullptr) config_file = from_environment;
  }
  if (config_file.empty() && HasDefaultConfig()) config_file = kDefaultConfig;
  if (!config_file.empty()) {
    auto from_file = ReadConfigFile(config_file);
    if (absl::IsPermissionDenied(from_file.status())) {
      return absl::PermissionDeniedError(
          StrCat(from_file.status().message(),
                 "; let the user that h5mirrord runs as read it, or name another with --config"));
    }
    if (!from_file.ok()) return from_file.status();
    settings = *std::move(from_file);
  }
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string name = EnvironmentName(key.name);
    if (const char* value = std::getenv(name.c_str()); value != nullptr) {
      settings.push_back({std::string(key.name), value, name});
    }
  }
  for (Setting& setting : FlagSettings(values)) settings.push_back(std::move(setting));
  return settings;
}

struct Parser {
  CLI::App app{kDescription, "h5mirrord"};
  Flags flags;
  FlagValues values;
  std::string config_file;
  std::string port_file;
  std::string embedded_file;
  bool check_config = false;
  std::string directory = "/etc/h5mirror";
  std::vector<std::string> hosts;
  std::string tokens_file = kDefaultTokens;
  std::vector<std::string> token_files;
  std::string token_expires;
  std::vector<std::string> token_from;
  std::string restore_umask = "027";

  Parser() {
    UseNarrowHelp(app);
    app.footer(kFooter);
    app.set_version_flag("--version", StrCat("h5mirrord ", kVersion));
    app.add_option("--config", config_file,
                   StrCat("Configuration file (TOML); ", std::string_view(kDefaultConfig),
                          " where it exists"))
        ->type_name("FILE");
    app.add_option("--port-file", port_file,
                   "When serving, write one line for each listener: its port, or unix:PATH")
        ->type_name("FILE");
    app.add_option("--embedded", embedded_file,
                   "Serve one file that has its history beside it, until standard input ends; "
                   "h5mirror starts it so")
        ->type_name("FILE");
    app.add_flag(
        "--check-config", check_config,
        "Check the configuration, print it, and end; names [[access]] and [[limits]] tables "
        "that can never decide");
    AddSettings(app, values);
    AddInit();
    AddToken();
    AddAccess();
    AddNotify();
    AddRestoreRoot();
    app.require_subcommand(0, 1);
  }

  void AddInit() {
    CLI::App* init = app.add_subcommand(
        "init",
        "Make a CA, a server certificate and a first token; again with --host: a new certificate");
    init->add_option("--dir", directory, "Where to put them")
        ->type_name("DIR")
        ->capture_default_str();
    init->add_option("--host", hosts,
                     "More names or addresses of this server, as clients write them")
        ->type_name("NAME,...")
        ->delimiter(',');
    init->add_option("--user", flags.init.user, "The user that h5mirrord runs as")
        ->type_name("NAME");
    init->add_option("--days", flags.init.valid_days, "Life of the certificates")
        ->type_name("N")
        ->check(WholeNumber(1, 36500))
        ->capture_default_str();
    init->callback([this] { flags.verb = Verb::kInit; });
  }

  void AddToken() {
    CLI::App* token = app.add_subcommand("token", "Add, list and remove tokens");
    token->require_subcommand(1);
    CLI::App* add = token->add_subcommand(
        "add", "Make a token and print it; only its digest is kept. SIGHUP makes a server know it");
    add->add_option("name", flags.token_name, "The token's name, stored with every version")
        ->required();
    flags.token_rights = "read,write";
    add->add_option("--rights", flags.token_rights,
                    "A list of read, write, restore, delete, operate; admin is the last three")
        ->capture_default_str();
    add->add_option("--files", token_files, "Only for files that match one of these")
        ->type_name("GLOB,...")
        ->delimiter(',');
    add->add_option("--expires", token_expires, "It ends after this long, as in 90d")
        ->type_name("TIME");
    add->add_option("--from", token_from, "Only from these addresses, as in 192.0.2.0/24")
        ->type_name("CIDR,...")
        ->delimiter(',');
    add->callback([this] { flags.verb = Verb::kTokenAdd; });
    CLI::App* rotate = token->add_subcommand(
        "rotate", "Print a new token for a name; the old one ends at the next SIGHUP");
    rotate->add_option("name", flags.token_name, "The token's name; rights and limits stay")
        ->required();
    rotate->callback([this] { flags.verb = Verb::kTokenRotate; });
    CLI::App* list = token->add_subcommand("list", "Names, rights and limits");
    list->callback([this] { flags.verb = Verb::kTokenList; });
    CLI::App* remove = token->add_subcommand("remove", "Remove a token");
    remove->add_option("name", flags.token_name, "The token's name")->required();
    remove->callback([this] { flags.verb = Verb::kTokenRemove; });
    for (CLI::App* verb : {add, list, remove, rotate}) {
      verb->add_option("--tokens-file", tokens_file, "The file of tokens")
          ->type_name("FILE")
          ->capture_default_str();
    }
  }

  void AddAccess() {
    CLI::App* access = app.add_subcommand("access", "Ask the [[access]] tables");
    access->require_subcommand(1);
    CLI::App* check = access->add_subcommand(
        "check", "Print the rights of a user to a file, and the table that decides");
    check
        ->add_option("user", flags.question.user,
                     "NAME, or unix:, cert:, jwt:, munge: or token:NAME")
        ->required();
    check->add_option("file", flags.question.file, "Its name on the server")->required();
    check->add_option("right", flags.question.right, "Exit with 1 if that right is missing");
    check->add_option("--owner", flags.question.owner,
                      "The file's owner: unix:NAME, token:NAME, ..., or nobody (default: the owner "
                      "below the root)");
    check->callback([this] { flags.verb = Verb::kAccessCheck; });
    access->fallthrough();
    check->fallthrough();
  }

  void AddNotify() {
    CLI::App* notify = app.add_subcommand("notify", "Try the receivers of [[notify]] tables");
    notify->require_subcommand(1);
    CLI::App* test = notify->add_subcommand(
        "test", "Send a test event to each receiver now; exit with 1 if one does not take it");
    test->callback([this] { flags.verb = Verb::kNotifyTest; });
    notify->fallthrough();
    test->fallthrough();
  }

  void AddRestoreRoot() {
    RestoreRootRequest& restore = flags.restore;
    CLI::App* verb = app.add_subcommand(
        "restore-root",
        "Rebuild a root that was lost from its archive (archive_heads); the server is stopped");
    verb->add_option("--archive", restore.archive,
                     "The archive, as the setting: dir:/PATH or s3://BUCKET/PREFIX?KEYS")
        ->type_name("URL")
        ->required();
    verb->add_option("--root", restore.root, "An empty directory, the root to be")
        ->type_name("DIR")
        ->required();
    verb->add_flag("--dry-run", restore.is_dry_run,
                   "Print what would come back, and as of when; change nothing");
    verb->add_flag("--take-over", restore.takes_over,
                   "Leave archived history in the archive, and make it the new root's; a server "
                   "of the former root stops using it");
    verb->add_option("--cell", restore.cell,
                     "Of an archive of a cluster, this cell alone, into DIR; else each cell comes "
                     "into a directory of its name below DIR")
        ->type_name("CELL");
    verb->add_option("--files", restore.files, "Only files that match one of these")
        ->type_name("GLOB,...")
        ->delimiter(',');
    verb->add_flag("--skip-damaged", restore.skips_damaged,
                   "Leave out files that the archive has not whole");
    verb->add_option("--umask", restore_umask, "Of heads, as the setting")
        ->type_name("OCTAL")
        ->capture_default_str();
    verb->add_flag("--json", restore.json, "Print the result as JSON");
    verb->callback([this] { flags.verb = Verb::kRestoreRoot; });
  }

  // kInvalidArgument: quotes the flag.
  absl::Status SetRestore() {
    RestoreRootRequest& restore = flags.restore;
    if (flags.verb != Verb::kRestoreRoot) return absl::OkStatus();
    const auto [end, error] = std::from_chars(
        restore_umask.data(), restore_umask.data() + restore_umask.size(), restore.umask_bits, 8);
    if (error != std::errc() || end != restore_umask.data() + restore_umask.size() ||
        restore.umask_bits > 0777) {
      return absl::InvalidArgumentError(
          StrCat("--umask: '", restore_umask, "' is no octal number up to 777"));
    }
    for (const std::string& glob : restore.files) {
      const absl::Status is_glob = CheckGlob(glob);
      if (!is_glob.ok()) {
        return absl::InvalidArgumentError(StrCat("--files: ", ToStd(is_glob.message())));
      }
    }
    if (!restore.takes_over || restore.files.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--take-over: the new root has to have all files of the archive, so --files cannot be");
  }

  // kInvalidArgument: quotes the flag.
  absl::Status SetTokenLimits() {
    const auto set = [&](std::string_view key, const std::string& text) {
      return flags.token_limits.Set(key, text);
    };
    for (const std::string& glob : token_files) H5M_RETURN_IF_ERROR(set("files", glob));
    for (const std::string& range : token_from) H5M_RETURN_IF_ERROR(set("from", range));
    if (!app.get_subcommand("token")->get_subcommand("add")->count("--expires")) {
      return absl::OkStatus();
    }
    const absl::StatusOr<absl::Duration> life = ParseLongDuration(token_expires);
    if (!life.ok() || *life <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          StrCat("--expires: '", token_expires, "' is no time of more than 0, as in 90d"));
    }
    flags.token_limits.expires = absl::Now() + *life;
    return absl::OkStatus();
  }
};

}  // namespace

ParsedFlags ParseFlags(int argc, char** argv) {
  Parser parser;
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (asked) {
      parser.app.exit(error);
      return {.flags = {}, .exit = ExitCode::kOk};
    }
    const std::vector<std::string> words(argv + 1, argv + argc);
    std::cerr << "h5mirrord: " << WhyNotParsed(parser.app, words, error)
              << " (h5mirrord --help shows all flags)\n";
    return {.flags = {}, .exit = ExitCode::kUsage};
  }
  for (const absl::Status& set : {parser.SetTokenLimits(), parser.SetRestore()}) {
    if (set.ok()) continue;
    std::cerr << "h5mirrord: " << set.message() << "\n";
    return {.flags = {}, .exit = ExitCode::kUsage};
  }
  Flags flags = std::move(parser.flags);
  flags.init.directory = parser.directory;
  flags.init.hosts = parser.hosts;
  flags.tokens_file = parser.tokens_file;
  flags.port_file = parser.port_file;
  if (flags.verb == Verb::kServe || flags.verb == Verb::kAccessCheck ||
      flags.verb == Verb::kNotifyTest) {
    if (parser.check_config && flags.verb == Verb::kServe) flags.verb = Verb::kCheckConfig;
    flags.embedded_file = parser.embedded_file;
    if (!parser.embedded_file.empty()) flags.verb = Verb::kEmbedded;
    auto settings = flags.verb == Verb::kEmbedded
                        ? absl::StatusOr<std::vector<Setting>>(FlagSettings(parser.values))
                        : CollectSettings(parser.config_file, parser.values);
    if (!settings.ok()) {
      std::cerr << "h5mirrord: " << settings.status().message() << "\n";
      return {.flags = {}, .exit = ExitCode::kUsage};
    }
    flags.settings = *std::move(settings);
    flags.config_file = parser.config_file;
  }
  return {.flags = std::move(flags), .exit = std::nullopt};
}

}  // namespace h5mirror::server
