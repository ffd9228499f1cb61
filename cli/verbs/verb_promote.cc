// h5mirror promote: a version of a fork becomes the newest one of the file that was forked.
#include <memory>

#include "base/hex.h"
#include "base/human.h"
#include "base/random.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/wait_progress.h"
#include "cli/verbs/fork_refusals.h"
#include "cli/verbs/verbs.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string fork;
  std::string file;
  std::string version = "latest";
  std::string comment;
  bool dry_run = false;
};

// Long, because the server reads and stages all bytes that the fork has changed, at worst the whole
// file.
constexpr absl::Duration kAnswerTime = absl::Hours(6);

// The one whose record names its server leads to it; names alone are of the configured one.
absl::StatusOr<rpc::Client*> ConnectBoth(Context& context, const FileArg& fork,
                                         const FileArg& file) {
  if (!fork.server.empty() && !file.server.empty() && !IsSameServer(fork.server, file.server)) {
    return absl::FailedPreconditionError(StrCat(fork.name, " is on ", fork.server, ", and ",
                                                file.name, " on ", file.server,
                                                ": both must be on one server"));
  }
  return context.Connect(fork.server.empty() ? file : fork);
}

void SayWhatIs(Context& context, const Options& options, const FileArg& fork, const FileArg& file,
               const v1::PromoteVersionResponse& answer) {
  const std::string from = StrCat("version ", answer.promoted_version(), " of ", fork.name);
  const std::string bytes = HumanBytes(static_cast<uint64_t>(answer.differing_bytes()));
  const int64_t version = answer.version().version();
  if (answer.unchanged()) {
    context.Say(StrCat(file.name, " is as in ", from, " already: version ", version));
  } else if (options.dry_run) {
    context.Say(StrCat(from, " can become a version of ", file.name, ", after version ", version,
                       ": at most ", bytes, " differ"));
  } else {
    context.Say(StrCat(file.name, " is as in ", from, " now: version ", version));
  }
  const bool is_made = !answer.unchanged() && !options.dry_run;
  if (is_made && file.record.has_value()) {
    context.Note(StrCat("the local file is as it was: h5mirror recover ", file.local.string(),
                        " brings it to version ", version));
  }
}

absl::StatusOr<int> RunPromote(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const VersionSpec wanted,
                       ParseVersionSpec(options.version, context.streams().zone));
  const WantedServer& server = context.flags().client.server;
  H5M_ASSIGN_OR_RETURN(const FileArg fork, ResolveFileArg(options.fork, server));
  H5M_ASSIGN_OR_RETURN(const FileArg file, ResolveFileArg(options.file, server));
  for (const FileArg* each : {&fork, &file}) H5M_RETURN_IF_ERROR(CheckHasServer(*each));
  H5M_ASSIGN_OR_RETURN(rpc::Client* const client, ConnectBoth(context, fork, file));
  v1::PromoteVersionRequest request;
  request.set_name(fork.name);
  H5M_ASSIGN_OR_RETURN(const int64_t version, ResolveVersion(context, *client, fork.name, wanted));
  request.set_version(version);
  request.set_into_name(file.name);
  request.set_comment(options.comment);
  *request.mutable_writer() = LocalWriter();
  request.set_request_id(ToByteString(RandomBytes16()));
  request.set_dry_run(options.dry_run);
  absl::StatusOr<v1::PromoteVersionResponse> promoted;
  {
    const WaitProgress progress(context.streams(),
                                StrCat("promote ", fork.name, " to ", file.name));
    promoted = client->PromoteVersion(request, kAnswerTime);
  }
  H5M_RETURN_IF_ERROR(OfOlderServer(promoted.status()));
  const v1::PromoteVersionResponse& answer = *promoted;
  if (context.json()) {
    context.Print(Json{{"fork", fork.name},
                       {"fork_version", answer.promoted_version()},
                       {"file", file.name},
                       {"version", VersionToJson(answer.version())},
                       {"unchanged", answer.unchanged()},
                       {"differing_bytes", answer.differing_bytes()},
                       {"dry_run", options.dry_run}});
  }
  SayWhatIs(context, options, fork, file, answer);
  return kExitOk;
}

}  // namespace

void AddPromote(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "promote", "Make a fork's newest version the newest one of the file that was forked");
  verb->add_option("FORK", options->fork, kFileHelp)->required();
  verb->add_option("FILE", options->file, "the file that FORK is a fork of, as FORK")->required();
  verb->add_option("--version", options->version,
                   "the fork's version to take: a number, latest, latest-K, tag:NAME or a time")
      ->capture_default_str();
  verb->add_option("-m,--comment", options->comment, "comment of the new version");
  verb->add_flag("--dry-run", options->dry_run,
                 "only say whether it can be done, and how much differs");
  OnVerb(*verb, context, action, options, RunPromote);
}

}  // namespace h5mirror::tools
