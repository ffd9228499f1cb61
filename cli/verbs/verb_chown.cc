// h5mirror chown: another owner for a file.
#include <memory>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string owner;
};

constexpr std::string_view kNobody = "nobody";

absl::StatusOr<int> RunChown(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  v1::SetFileOwnerRequest request;
  request.set_name(file.name);
  if (options.owner != kNobody) request.set_owner(options.owner);
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status, file.client->SetFileOwner(request));
  if (context.json()) {
    context.Print(Json{{"file", file.name},
                       {"owner", status.owner().empty() ? Json(nullptr) : Json(status.owner())}});
  }
  context.Say(status.owner().empty() ? StrCat(file.name, " has no owner now")
                                     : StrCat(file.name, " belongs to ", status.owner(), " now"));
  return kExitOk;
}

}  // namespace

void AddChown(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("chown", "Give a file another owner, for [[access]] tables");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  verb->add_option("OWNER", options->owner,
                   "unix:NAME, token:NAME, cert:NAME or jwt:NAME, or nobody")
      ->required();
  OnVerb(*verb, context, action, options, RunChown);
}

}  // namespace h5mirror::tools
