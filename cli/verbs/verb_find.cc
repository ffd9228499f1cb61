// h5mirror find: the objects of many files whose paths match a pattern.
#include "cli/verbs/verb_find.h"

#include <memory>

#include "base/strings.h"
#include "cli/context/path_globs.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {

void AddFind(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
             const FindRunner& runner, Action& action) {
  auto options = std::make_shared<FindOptions>();
  CLI::App* verb = app.add_subcommand("find", "Find objects by path and attribute, in many files");
  verb->add_option("GLOB", options->glob, kPathGlobHelp)->required();
  verb->add_option("PLACE", options->places,
                   "files and directories under the server's root (default: all files)");
  verb->add_option("--attr", options->attributes,
                   "only objects with this attribute, NAME, or NAME=VALUE; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--at", options->at,
                   "look into the newest version of this time, as `log --until` takes it "
                   "(default: now)");
  verb->add_flag("--every-version", options->every_version,
                 "look into all versions until then, and list those with the object");
  verb->callback([&context, &action, &arguments, &runner, options] {
    action = [&context, &arguments, &runner, options]() -> absl::StatusOr<int> {
      if (runner == nullptr) return RunHdf5Helper("find", arguments);
      return runner(context, *options);
    };
  });
}

}  // namespace h5mirror::tools
