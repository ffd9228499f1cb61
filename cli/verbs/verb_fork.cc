// h5mirror fork: a new file on the server, which begins with a version of another one.
#include <memory>

#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/text.h"
#include "cli/output/wait_progress.h"
#include "cli/verbs/fork_refusals.h"
#include "cli/verbs/verbs.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  std::string new_name;
  std::string comment;
};

// Where the file system shares no blocks, all of the file is copied.
constexpr absl::Duration kAnswerTime = absl::Hours(6);
constexpr absl::Duration kLookTime = absl::Seconds(30);

// The number of the file's newest version; that of the forked one where the server does not tell.
int64_t NewestOf(const ConnectedVersion& file) {
  v1::GetFileRequest request;
  request.set_name(file.name);
  const absl::StatusOr<v1::FileStatus> status = file.client->GetFile(request, kLookTime);
  return status.ok() ? status->newest_version().version() : file.version;
}

// A promotion wants a file that is as its fork knew it. Whether a newer version has the forked
// one's bytes again is for the server to find out, when it is asked to promote.
void SayWhatBecomesOfIt(Context& context, const ConnectedVersion& file,
                        const std::string& new_name) {
  const int64_t newest = NewestOf(file);
  if (newest <= file.version) {
    context.Say("To take over what becomes of it:");
    context.Say(StrCat("  h5mirror promote ", ShellWord(new_name), " ", ShellWord(file.name)));
    return;
  }
  context.Say(StrCat("version ", file.version, " is not the newest of ", file.name, " (", newest,
                     "): ", new_name));
  context.Say(StrCat("cannot be promoted while ", file.name, " is at version ", newest,
                     " with other bytes."));
  context.Say("For a fork that can be promoted:");
  context.Say(StrCat("  h5mirror fork ", ShellWord(file.name + "@latest"), " NEW"));
}

absl::StatusOr<int> RunFork(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedVersion file, ConnectVersion(context, options.file));
  H5M_RETURN_IF_ERROR(CheckHasServer(file));
  v1::ForkVersionRequest request;
  request.set_name(file.name);
  request.set_version(file.version);
  request.set_new_name(options.new_name);
  request.set_comment(options.comment);
  *request.mutable_writer() = LocalWriter();
  request.set_request_id(ToByteString(RandomBytes16()));
  absl::StatusOr<v1::Version> version;
  {
    const WaitProgress progress(
        context.streams(), StrCat("fork ", file.name, "@", file.version, " as ", options.new_name));
    version = file.client->ForkVersion(request, kAnswerTime);
  }
  H5M_RETURN_IF_ERROR(OfOlderServer(version.status()));
  if (context.json()) {
    context.Print(Json{{"file", file.name},
                       {"from_version", file.version},
                       {"new_name", options.new_name},
                       {"version", VersionToJson(*version)}});
    return kExitOk;
  }
  context.Say(StrCat(options.new_name, " begins as version ", file.version, " of ", file.name));
  SayWhatBecomesOfIt(context, file, options.new_name);
  return kExitOk;
}

}  // namespace

void AddFork(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "fork", "Make a new file on the server, with a version of another one as its first");
  verb->add_option("FILE@VERSION", options->file, kVersionHelp)->required();
  verb->add_option("NEW", options->new_name, "the new file's name under the server's root")
      ->required();
  verb->add_option("-m,--comment", options->comment, "comment of the new file's version 1");
  OnVerb(*verb, context, action, options, RunFork);
}

}  // namespace h5mirror::tools
