// h5mirror diff: what differs between two versions of a file, or between two files.
#include "cli/verbs/verb_diff.h"

#include <limits>
#include <memory>

#include "base/cli_checks.h"
#include "base/strings.h"
#include "cli/context/file_at_version.h"
#include "cli/context/path_globs.h"
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
  CLI::App* verb =
      app.add_subcommand("diff", "List the differences between two versions, or between two files");
  verb->add_option("FILE@OLD", options->old_version,
                   StrCat(kVersionHelp, "; without @VERSION: a local file as it is"))
      ->required();
  verb->add_option("FILE@NEW", options->new_version,
                   "the other version, also of another file (default: the newest version)");
  CLI::Option* pages = verb->add_flag("--pages", options->pages,
                                      "list the pages whose bytes differ, not the objects");
  verb->add_option("--exclude", options->exclude,
                   StrCat("neither compare nor list objects at or below these paths: ",
                          kPathGlobHelp, "; may be repeated"))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->excludes(pages);
  const auto tolerance = AnyNumber(0, std::numeric_limits<double>::max());
  verb->add_option("--rtol", options->relative_tolerance,
                   "the R of: numbers are equal if |old - new| <= A + R * |new| (default: 0)")
      ->check(tolerance)
      ->excludes(pages);
  verb->add_option("--atol", options->absolute_tolerance, "the A of that rule (default: 0)")
      ->check(tolerance)
      ->excludes(pages);
  verb->add_option("--stop-after", options->stop_after,
                   "end after this time (30s, 5m), and say that not all was compared")
      ->check(DurationFrom(absl::ZeroDuration(), absl::Hours(24)));
  verb->add_flag("--full", options->full,
                 "look at every object, also if the changed bytes prove that it is the same");
  verb->add_flag("--stats", options->stats,
                 "print the numbers of changed pages, pages read, and objects compared");
  verb->footer(
      "Exit codes: 0 equal, 1 different, 2 not all could be compared, or an error without\n"
      "a code of its own. The others are those of all verbs: see h5mirror --help.");
  verb->callback([&context, &action, &arguments, &runner, options] {
    action = [&context, &arguments, &runner, options]() -> absl::StatusOr<int> {
      if (runner == nullptr) return RunHdf5Helper("diff", arguments);
      return EndOf(context, runner(context, *options));
    };
  });
}

}  // namespace h5mirror::tools
