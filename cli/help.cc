#include "cli/help.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/strings.h"
#include "cli/context/exit_code.h"

namespace h5mirror::tools {
namespace {

// One or two a verb, each a line.
const std::map<std::string_view, std::string_view>& Examples() {
  static const auto& examples = *new std::map<std::string_view, std::string_view>{
      {"ls",
       "h5mirror ls -l node7/data\n"
       "h5mirror ls --removed"},
      {"status",
       "h5mirror status run.h5\n"
       "h5mirror status --wait=30 run.h5"},
      {"log",
       "h5mirror log run.h5\n"
       "h5mirror log run.h5 --since 'yesterday 14:00' -n 20\n"
       "h5mirror log run.h5:/entry/data"},
      {"blame", "h5mirror blame run.h5:/entry/data"},
      {"find",
       "h5mirror find '/entry/*' node7/data --attr units=K\n"
       "h5mirror find '**/calibration' run.h5 --every-version"},
      {"show",
       "h5mirror show run.h5@12\n"
       "h5mirror show run.h5@tag:published"},
      {"diff",
       "h5mirror diff run.h5@latest-1\n"
       "h5mirror diff --pages run.h5@11 run.h5@12\n"
       "h5mirror diff run.h5@12 --exclude '/scratch/*' --rtol 1e-6\n"
       "h5mirror diff run.h5@12 second.h5@latest"},
      {"tag",
       "h5mirror tag run.h5@12 published\n"
       "h5mirror tag --force run.h5@latest published"},
      {"untag", "h5mirror untag run.h5 published"},
      {"commit", "h5mirror commit run.h5 -m 'before the new calibration'"},
      {"watch",
       "h5mirror watch run.h5\n"
       "h5mirror watch run.h5 --until-done --exec 'python plot.py'"},
      {"mv", "h5mirror mv node7/data/run.h5 node7/data/run12.h5"},
      {"chown", "h5mirror chown node7/data/run.h5 unix:anna"},
      {"rm", "h5mirror rm node7/data/run.h5"},
      {"undelete", "h5mirror undelete node7/data/run.h5 --as node7/data/old.h5"},
      {"export",
       "h5mirror export run.h5@latest-1 before.h5\n"
       "h5mirror export run.h5@yesterday then.h5"},
      {"rollback", "h5mirror rollback run.h5@12 -m 'calibration was wrong'"},
      {"fork", "h5mirror fork run.h5@12 trial.h5 -m 'another calibration'"},
      {"promote",
       "h5mirror promote trial.h5 run.h5 --dry-run\n"
       "h5mirror promote trial.h5 run.h5 -m 'the new calibration'"},
      {"restore",
       "h5mirror restore run.h5@12:/entry/data\n"
       "h5mirror restore run.h5@yesterday:/entry --as /entry.yesterday --dry-run\n"
       "h5mirror restore run.h5@12:/entry/data --attribute units --replace"},
      {"archive",
       "h5mirror archive run.h5\n"
       "h5mirror archive --all --older-than 30d"},
      {"prune",
       "h5mirror prune run.h5 --keep-daily 7 --keep-weekly 4 --dry-run\n"
       "h5mirror prune run.h5 --keep-last 10 --keep-tag published"},
      {"stats",
       "h5mirror stats run.h5\n"
       "h5mirror stats run.h5 --keep-last 10"},
      {"usage",
       "h5mirror usage\n"
       "h5mirror usage --all"},
      {"cluster",
       "h5mirror cluster status\n"
       "h5mirror cluster move bl7 node8\n"
       "h5mirror cluster drain node7\n"
       "h5mirror cluster evict node7"},
      {"verify",
       "h5mirror verify run.h5\n"
       "h5mirror verify --against /data/run.h5"},
      {"recover",
       "h5mirror recover /data/run.h5 --dry-run\n"
       "h5mirror recover /data/run.h5 --version latest-1"},
      {"push",
       "h5mirror push /data/run.h5\n"
       "h5mirror push -r /data/2026 --root /data"},
      {"resync",
       "h5mirror resync /data/run.h5 --dry-run\n"
       "h5mirror resync --from local /data/run.h5"},
      {"adopt", "h5mirror adopt /data/run.h5 --name node7/data/run.h5"},
      {"rehome",
       "h5mirror rehome /data --dry-run\n"
       "h5mirror rehome --from old-host:7447 /data"},
      {"login",
       "h5mirror login --issuer https://sso.example/realms/lab --client-id h5mirror\n"
       "h5mirror login --token-command 'oidc-token lab'\n"
       "h5mirror login --refresh"},
      {"logout", "h5mirror logout"},
      {"web", "h5mirror web --server node7:7447 --http https://node7:7448 --open"},
      {"doctor", "h5mirror doctor\nh5mirror doctor --python /opt/venv/bin/python"},
      {"exec",
       "h5mirror exec -- python experiment.py\n"
       "h5mirror exec --strict --root /data -- ./simulate /data/run.h5"},
  };
  return examples;
}

// Indented, below a title.
std::string Block(std::string_view title, std::string_view lines) {
  std::string block = StrCat(title, "\n");
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    StrAppend(&block, "  ", line, "\n");
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return block;
}

}  // namespace

void AddFooters(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    const auto found = Examples().find(verb->get_name());
    if (found == Examples().end()) continue;
    const bool is_one = found->second.find('\n') == std::string_view::npos;
    const std::string more = verb->get_footer();
    verb->footer(StrCat(more, more.empty() ? "" : "\n\n",
                        Block(is_one ? "Example:" : "Examples:", found->second)));
  }
  app.footer(
      StrCat("h5mirror help VERB describes a verb, with examples; man h5mirror all of them.\n\n",
             ExitCodeHelp()));
}

void TakeHelp(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "help") return;
  arguments.erase(arguments.begin());
  if (arguments.size() > 1) arguments.resize(1);
  const auto is_meant = [&](const CLI::App* verb) { return verb->get_name() == arguments[0]; };
  const bool is_known = arguments.empty() || !app.get_subcommands(is_meant).empty();
  if (is_known) arguments.push_back("--help");
}

}  // namespace h5mirror::tools
