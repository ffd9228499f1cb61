// h5mirror commit: a version of a file as it is, from outside of the program that writes it.
#include <memory>

#include "base/cli_checks.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/verbs/verbs.h"
#include "sync/push_plan.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string comment;
  double wait_seconds = 30;
};

// Beyond the request's own wait: the cut still has to become durable.
constexpr absl::Duration kAnswerTime = absl::Minutes(6);

absl::StatusOr<int> RunCommit(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  v1::CommitVersionRequest request = NewCommit(file.name, options.comment);
  const absl::Duration wait = absl::Seconds(options.wait_seconds);
  request.mutable_wait()->set_seconds(absl::ToInt64Seconds(wait));
  request.mutable_wait()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(wait - absl::Seconds(absl::ToInt64Seconds(wait)))));
  H5M_ASSIGN_OR_RETURN(const v1::CommitVersionResponse answer,
                       file.client->CommitVersion(request, wait + kAnswerTime));
  const int64_t number = answer.version().version();
  if (context.json()) {
    context.Print(Json{{"file", file.name},
                       {"version", VersionToJson(answer.version())},
                       {"unchanged", answer.unchanged()}});
  }
  if (answer.unchanged()) {
    context.Say(StrCat(file.name, " has not changed since version ", number,
                       ": no new one; `h5mirror tag` names that one"));
  } else {
    context.Say(StrCat(file.name, " is version ", number));
  }
  return kExitOk;
}

}  // namespace

void AddCommit(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "commit",
      "Make a version of a file as it is, or as it is at the writer's next flush or close");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  verb->add_option("-m,--comment", options->comment, "comment of the version");
  verb->add_option("--wait", options->wait_seconds,
                   "seconds to wait for the writer's next flush or close")
      ->capture_default_str()
      ->check(AnyNumber(0, 3600));
  OnVerb(*verb, context, action, options, RunCommit);
}

}  // namespace h5mirror::tools
