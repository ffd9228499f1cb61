// h5mirror tag, h5mirror untag: names of versions.
#include <memory>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string tag;
  bool force = false;
};

absl::StatusOr<int> RunTag(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedVersion file, ConnectVersion(context, options.file));
  v1::TagVersionRequest request;
  request.set_name(file.name);
  request.set_version(file.version);
  request.set_tag(options.tag);
  request.set_move(options.force);
  const absl::StatusOr<v1::TagVersionResponse> answer = file.client->TagVersion(request);
  if (absl::IsAlreadyExists(answer.status())) {
    return absl::AlreadyExistsError(StrCat(answer.status().message(), "; --force moves it"));
  }
  H5M_RETURN_IF_ERROR(answer.status());
  const int64_t previous = answer->previous_version();
  if (context.json()) {
    Json json{{"file", file.name},
              {"tag", options.tag},
              {"version", VersionToJson(answer->version())},
              {"previous_version", nullptr}};
    if (previous != 0) json["previous_version"] = previous;
    context.Print(json);
  }
  const std::string what = StrCat(file.name, "@", file.version);
  if (previous == file.version) {
    context.Say(StrCat(what, " has tag ", options.tag, " already"));
  } else if (previous != 0) {
    context.Say(StrCat(what, " has tag ", options.tag, ", which version ", previous, " had"));
  } else {
    context.Say(StrCat(what, " has tag ", options.tag));
  }
  return kExitOk;
}

absl::StatusOr<int> RunUntag(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  v1::UntagVersionRequest request;
  request.set_name(file.name);
  request.set_tag(options.tag);
  H5M_ASSIGN_OR_RETURN(const v1::UntagVersionResponse answer, file.client->UntagVersion(request));
  if (context.json()) {
    context.Print(Json{{"file", file.name}, {"tag", options.tag}, {"version", answer.version()}});
  }
  context.Say(StrCat(file.name, "@", answer.version(), " has tag ", options.tag, " no more"));
  return kExitOk;
}

constexpr char kTagHelp[] =
    "1 to 100 letters, digits, '.', '_' and '-', and no number; FILE@tag:NAME is then the version";

}  // namespace

void AddTag(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("tag", "Give a version a name");
  verb->add_option("FILE@VERSION", options->file, kVersionHelp)->required();
  verb->add_option("NAME", options->tag, kTagHelp)->required();
  verb->add_flag("-f,--force", options->force, "take the name from the version that has it");
  OnVerb(*verb, context, action, options, RunTag);
}

void AddUntag(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("untag", "Take a name from a version");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  verb->add_option("NAME", options->tag, "the name, see `h5mirror log`")->required();
  OnVerb(*verb, context, action, options, RunUntag);
}

}  // namespace h5mirror::tools
