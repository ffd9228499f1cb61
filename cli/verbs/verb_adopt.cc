// h5mirror adopt: a local file that equals the server's newest version becomes its origin.
#include <memory>

#include "absl/time/clock.h"
#include "base/dirty_map.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/output/progress.h"
#include "cli/verbs/verbs.h"
#include "sync/compare.h"
#include "sync/local_file.h"
#include "sync/push_plan.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string local;
  std::string name;
};

absl::Status RefuseDifferent(const std::string& local, const std::string& name,
                             const LocalFile& file, Comparison& comparison) {
  H5M_ASSIGN_OR_RETURN(const uint64_t first, comparison.FindFirst());
  return absl::FailedPreconditionError(
      StrCat(local, " (", HumanBytes(file.size_bytes()), ") differs from ", name, "@",
             comparison.version().version(), " (", HumanBytes(comparison.remote_size_bytes()),
             ") in ", HumanBytes(comparison.differing_bytes()), ", first at offset ", first,
             "; h5mirror resync --from local --name ", name, " ", local,
             " takes the local one, --from remote the server's"));
}

absl::StatusOr<v1::FileStatus> Adopt(rpc::Client& client, const LocalFile& file,
                                     const std::string& name, int64_t version) {
  v1::AdoptFileRequest request;
  request.set_name(name);
  request.set_version(version);
  H5M_ASSIGN_OR_RETURN(*request.mutable_origin(), LocalOrigin(file.path()));
  *request.mutable_local() = ToProto(file.stat());
  return client.AdoptFile(request);
}

absl::Status WriteRecord(const LocalFile& file, const RecordPlace& place, const std::string& server,
                         const std::string& name, const v1::Version& version,
                         const v1::FileStatus& status) {
  LocalRecord record;
  record.state = RecordState::kClean;
  H5M_ASSIGN_OR_RETURN(record.file_id, FromByteString(status.file_id()));
  record.server = server;
  record.name = name;
  record.cut = version.cut();
  record.version = version.version();
  record.stat = file.stat();
  record.since = absl::Now();
  H5M_RETURN_IF_ERROR(WriteLocalRecord(place, record));
  RemoveDirtyMap(place);
  return absl::OkStatus();
}

absl::StatusOr<int> RunAdopt(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(FileArg arg, ResolveLocalArg(options.local, context.flags().client.server));
  if (!options.name.empty()) arg.name = options.name;
  if (arg.name.empty()) {
    return absl::InvalidArgumentError(StrCat(
        options.local, ": no record of a mirror beside it; say which file it is with --name NAME"));
  }
  H5M_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(arg.local, FileLock::kShared));
  H5M_RETURN_IF_ERROR(CheckNoEdit(file));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(arg));
  LocalBlocks blocks(file.fd(), file.size_bytes(), options.local);
  absl::Status compared;
  v1::Version version;
  {
    Progress progress(context.streams(), StrCat("comparing ", options.local), file.size_bytes());
    Comparison comparison(*client, arg.name, 0, blocks, progress);
    compared = comparison.Coarse();
    if (compared.ok()) compared = file.CheckUnchanged();
    if (compared.ok() && !comparison.equal()) {
      compared = RefuseDifferent(options.local, arg.name, file, comparison);
    }
    version = comparison.version();
  }
  H5M_RETURN_IF_ERROR(compared);
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status,
                       Adopt(*client, file, arg.name, version.version()));
  H5M_RETURN_IF_ERROR(
      WriteRecord(file, arg.place(), client->options().server, arg.name, version, status));
  NoteFoundEqual(*client, status, version.version());
  if (context.json()) {
    context.Print(
        Json{{"local", options.local}, {"file", arg.name}, {"version", VersionToJson(version)}});
  }
  context.Say(StrCat("adopted ", options.local, ": the same as ", arg.name, "@", version.version(),
                     ", written from here from now on"));
  return kExitOk;
}

}  // namespace

void AddAdopt(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "adopt", "Take a local file that equals the server's newest version as its origin");
  verb->add_option("LOCAL", options->local, "a closed local file")->required();
  verb->add_option("--name", options->name, "the file's name under the server's root");
  OnVerb(*verb, context, action, options, RunAdopt);
}

}  // namespace h5mirror::tools
