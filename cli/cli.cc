#include "cli/cli.h"

#include <algorithm>
#include <cstddef>

#include "CLI/CLI.hpp"
#include "base/cli_checks.h"
#include "base/cli_help.h"
#include "base/cli_words.h"
#include "base/strings.h"
#include "base/version.h"
#include "cli/context/context.h"
#include "cli/context/exit_code.h"
#include "cli/help.h"
#include "cli/verbs/verb_cluster.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

constexpr char kAbout[] =
    "h5mirror: live mirrors and versions of HDF5 files.\n\n"
    "FILE is a name under the server's root, or a local path. The record beside a local path\n"
    "(in X.h5.h5m) tells its server and name. FILE@VERSION is a number, latest, latest-K for\n"
    "K versions before it, tag:NAME, or a time (2026-11-03T14:00, yesterday, 'monday 14:00',\n"
    "2h-ago; local, or with Z or +hh:mm) for the newest version at that time.";

void AddGlobalFlags(CLI::App& app, GlobalFlags& flags) {
  app.add_option("--server", flags.client.server,
                 "HOST[:PORT], [IPV6]:PORT, unix:PATH or embedded; of a cluster A|B (default: "
                 "H5MIRROR_SERVER, then client.toml "
                 "in ~/.config/h5mirror and /etc/h5mirror, then 127.0.0.1:7447)");
  app.add_option("--ca", flags.client.ca, "PEM file of the CA that signed the server: speak TLS");
  app.add_option("--token", flags.client.token, "the token, as @FILE");
  const auto set_timeout = [&flags](double seconds) {
    flags.timeout_seconds = flags.refused_seconds = seconds;
  };
  app.add_option_function<double>(
         "--timeout", set_timeout,
         "seconds to wait for a connection (default: 10, and 2 where nothing listens)")
      ->check(AnyNumber(0.1, 3600));
  app.add_option("--plugin-dir", flags.plugin_dir,
                 "directory of the plugin (default: H5MIRROR_PLUGIN_DIR, or beside this program)");
  app.add_flag("--json", flags.json, "print JSON; keys are listed in h5mirror(1)");
}

// `exec` runs another program's command line, which must not be parsed here. It follows "--", or
// begins at the first word that is neither a flag of h5mirror nor a flag's value.
std::vector<std::string> TakeProgram(const CLI::App& app, std::vector<std::string>& words) {
  const size_t verb = SkipFlags({&app}, words, 0);
  if (verb == words.size() || words[verb] != "exec") return {};
  const size_t end = SkipFlags({&app, app.get_subcommand("exec")}, words, verb + 1);
  if (end == words.size()) return {};
  const bool marked = words[end] == "--";
  if (!marked && words[end].starts_with('-')) return {};  // A flag that exec does not have.
  const auto first = words.begin() + static_cast<std::ptrdiff_t>(end);
  std::vector<std::string> program(first + (marked ? 1 : 0), words.end());
  words.erase(first, words.end());
  return program;
}

// CLI11's own codes become ours; its messages our one line.
int EndOfParse(const CLI::App& app, const std::vector<std::string>& words,
               const CLI::ParseError& error, Context& context) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return app.exit(error, context.streams().out, context.streams().err);
  }
  context.Note(StrCat(WhyNotParsed(app, words, error), "; see h5mirror --help"));
  return kExitUsage;
}

int EndOf(const absl::StatusOr<int>& result, Context& context) {
  if (result.ok()) return *result;
  context.Note(ToStd(result.status().message()));
  if (absl::IsDataLoss(result.status())) {
    context.Note("h5mirror verify FILE lists all damage, h5mirror log FILE the other versions");
  }
  return ExitCodeFor(result.status());
}

}  // namespace

int RunCli(const std::vector<std::string>& arguments, Streams& streams,
           const Hdf5Runners& runners) {
  GlobalFlags flags;
  flags.arguments = arguments;
  Context context(flags, streams);
  Action action;
  std::vector<std::string> program;
  CLI::App app(kAbout, "h5mirror");
  UseNarrowHelp(app);
  app.set_version_flag("--version", StrCat("h5mirror ", kVersion));
  app.require_subcommand(1);
  app.fallthrough();  // Global flags may follow the verb.
  AddGlobalFlags(app, flags);
  AddLs(app, context, action);
  AddStatus(app, context, action);
  AddLog(app, context, arguments, runners.log_object, action);
  AddBlame(app, context, arguments, runners.blame, action);
  AddFind(app, context, arguments, runners.find, action);
  AddShow(app, context, action);
  AddDiff(app, context, arguments, runners.diff, action);
  AddTag(app, context, action);
  AddUntag(app, context, action);
  AddCommit(app, context, action);
  AddWatch(app, context, arguments, runners.compare_cuts, action);
  AddMv(app, context, action);
  AddChown(app, context, action);
  AddRm(app, context, action);
  AddUndelete(app, context, action);
  AddExport(app, context, action);
  AddRollback(app, context, action);
  AddFork(app, context, action);
  AddPromote(app, context, action);
  AddRestore(app, context, action);
  AddPrune(app, context, action);
  AddArchive(app, context, action);
  AddStats(app, context, action);
  AddUsage(app, context, action);
  AddCluster(app, context, action);
  AddVerify(app, context, arguments, runners.open, action);
  AddRecover(app, context, action);
  AddPush(app, context, action);
  AddResync(app, context, action);
  AddAdopt(app, context, action);
  AddRehome(app, context, action);
  AddLogin(app, context, action);
  AddLogout(app, context, action);
  AddWeb(app, arguments, action);
  AddDoctor(app, context, action);
  AddExec(app, context, program, action);
  AddFooters(app);
  std::vector<std::string> ours = arguments;
  TakeHelp(app, ours);
  program = TakeProgram(app, ours);
  const std::vector<std::string> words = ours;
  std::reverse(ours.begin(), ours.end());  // CLI11 takes a vector from its end.
  try {
    app.parse(ours);
  } catch (const CLI::ParseError& error) {
    return EndOfParse(app, words, error, context);
  }
  return EndOf(action(), context);
}

}  // namespace h5mirror::tools
