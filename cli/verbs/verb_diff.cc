// h5mirror diff: what differs between two versions of a file.
#include "cli/verbs/verb_diff.h"

#include <memory>

#include "base/strings.h"
#include "cli/context/file_at_version.h"
#include "cli/verbs/hdf5_runners.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

// 1 means "different" here, so what has no code of its own is trouble.
absl::StatusOr<int> EndOf(Context& context, const absl::StatusOr<int>& result) {
  if (result.ok() || ExitCodeFor(result.status()) != kExitFailure) return result;
  context.Note(ToStd(result.status().message()));
  return kDiffTrouble;
}

}  // namespace

void AddDiff(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
             const DiffRunner& runner, Action& action) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* verb = app.add_subcommand("diff", "Tell what differs between two versions");
  verb->add_option("FILE@OLD", options->old_version, kVersionHelp)->required();
  verb->add_option("FILE@NEW", options->new_version,
                   "the version to compare it with (default: the newest)");
  verb->add_flag("--pages", options->pages, "list the pages whose bytes differ, not the objects");
  verb->add_flag("--full", options->full,
                 "look at every object, also where the changed bytes prove that it is the same");
  verb->add_flag("--stats", options->stats, "say what was read");
  verb->footer(
      "Exit codes: 0 equal, 1 different, 2 not all could be compared, or trouble that has\n"
      "no code of its own; others as of all verbs, see h5mirror --help.");
  verb->callback([&context, &action, &arguments, &runner, options] {
    action = [&context, &arguments, &runner, options]() -> absl::StatusOr<int> {
      if (runner == nullptr) return RunHdf5Helper("diff", arguments);
      return EndOf(context, runner(context, *options));
    };
  });
}

}  // namespace h5mirror::tools
