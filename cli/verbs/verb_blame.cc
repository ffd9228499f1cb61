// h5mirror blame: which version gave each attribute of an object the value that it has.
#include <memory>

#include "base/strings.h"
#include "cli/context/object_at_version.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {

void AddBlame(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
              const ObjectLogRunner& runner, Action& action) {
  auto object = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand(
      "blame", "List the attributes of an object, each with the version that gave it its value");
  verb->add_option("FILE:/PATH", *object, StrCat("the object; FILE: ", kFileHelp))->required();
  verb->callback([&context, &action, &arguments, &runner, object] {
    action = [&context, &arguments, &runner, object]() -> absl::StatusOr<int> {
      const std::optional<ObjectInFile> wanted = ParseObjectInFile(*object);
      if (!wanted) {
        return absl::InvalidArgumentError(
            StrCat("'", *object, "' names no object: write FILE:/path/to/object"));
      }
      if (runner == nullptr) return RunHdf5Helper("blame", arguments);
      ObjectLogOptions options;
      options.file = wanted->file;
      options.path = wanted->path;
      return runner(context, options);
    };
  });
}

}  // namespace h5mirror::tools
