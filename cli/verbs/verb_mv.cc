// h5mirror mv: another name for a file and its history; of a local file, on both sides.
#include <filesystem>
#include <memory>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/verbs/verbs.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string from;
  std::string to;
  std::string name;
};

absl::Status MoveOnServer(rpc::Client& client, const std::string& from, const std::string& to) {
  v1::MoveFileRequest request;
  request.set_name(from);
  request.set_new_name(to);
  return client.MoveFile(request).status();
}

absl::StatusOr<int> MoveName(Context& context, const Options& options, const FileArg& file) {
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(file));
  H5M_RETURN_IF_ERROR(MoveOnServer(*client, file.name, options.to));
  if (context.json()) {
    context.Print(Json{{"from", file.name}, {"to", options.to}, {"local", nullptr}});
  }
  context.Say(StrCat(file.name, " is ", options.to, " now"));
  return kExitOk;
}

// A local file, its record and its mirror. Until the last step a program that opens the file under
// either name is told that the two sides differ; `adopt` of the new path goes on from there.
class LocalMove {
 public:
  LocalMove(rpc::Client& client, const FileArg& file, std::filesystem::path to)
      : client_(client), file_(file), to_(std::move(to)) {}

  absl::StatusOr<std::string> NewName(const std::string& wanted, const std::string& root) const {
    if (!wanted.empty()) return wanted;
    const auto before = DefaultName(file_.local, root);
    if (before.ok() && *before == file_.name) return DefaultName(to_, root);
    return absl::InvalidArgumentError(
        StrCat(file_.local.string(), " is mirrored as ", file_.name,
               ", which its path does not lead to: give the new name with --name"));
  }

  absl::Status Run(const std::string& new_name) {
    H5M_ASSIGN_OR_RETURN(const LocalFile local, LocalFile::Open(file_.local, FileLock::kExclusive));
    H5M_RETURN_IF_ERROR(CheckTarget());
    if (file_.record->state != RecordState::kClean || file_.record->stat != local.stat()) {
      return absl::FailedPreconditionError(
          StrCat(file_.local.string(), " and its mirror differ: h5mirror status ",
                 file_.local.string(), " tells how; settle that first"));
    }
    H5M_RETURN_IF_ERROR(MoveOnServer(client_, file_.name, new_name));
    H5M_RETURN_IF_ERROR(Rename(file_.local, to_));
    H5M_RETURN_IF_ERROR(Rename(RecordDirectory(file_.local), RecordDirectory(to_)));
    return Settle(new_name);
  }

 private:
  absl::Status CheckTarget() const {
    for (const std::filesystem::path& taken : {to_, RecordDirectory(to_)}) {
      std::error_code error;
      if (std::filesystem::exists(std::filesystem::symlink_status(taken, error))) {
        return absl::AlreadyExistsError(StrCat(taken.string(), " exists"));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Rename(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::error_code error;
    std::filesystem::rename(from, to, error);
    if (!error) return absl::OkStatus();
    return absl::FailedPreconditionError(StrCat("rename ", from.string(), " to ", to.string(), ": ",
                                                error.message(),
                                                "; the mirror has its new name already"));
  }

  // The new path is the file's origin, and its stat (a rename changes the ctime) the one to expect.
  absl::Status Settle(const std::string& new_name) {
    v1::AdoptFileRequest request;
    request.set_name(new_name);
    request.set_version(file_.record->version);
    H5M_ASSIGN_OR_RETURN(*request.mutable_origin(), LocalOrigin(to_));
    H5M_ASSIGN_OR_RETURN(const FileStat stat, StatFile(to_));
    *request.mutable_local() = ToProto(stat);
    H5M_RETURN_IF_ERROR(client_.AdoptFile(request).status());
    LocalRecord record = *file_.record;
    record.name = new_name;
    record.stat = stat;
    return WriteLocalRecord({to_, file_.tag}, record);
  }

  rpc::Client& client_;
  const FileArg& file_;
  const std::filesystem::path to_;
};

absl::StatusOr<int> RunMove(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const FileArg file,
                       ResolveFileArg(options.from, context.flags().client.server));
  if (!file.local.empty()) {
    H5M_ASSIGN_OR_RETURN(const auto records, FindLocalRecords(file.local));
    if (records.size() > 1) {
      return absl::FailedPreconditionError(StrCat(
          file.local.string(), " has ", records.size(),
          " mirrors: rename the local file alone (mv), and the next program that writes to it "
          "has each server rename its own"));
    }
  }
  if (!file.record.has_value()) return MoveName(context, options, file);
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(file));
  std::filesystem::path to = options.to;
  if (std::filesystem::is_directory(to)) to /= file.local.filename();
  LocalMove move(*client, file, to);
  H5M_ASSIGN_OR_RETURN(const std::string name, move.NewName(options.name, client->options().root));
  H5M_RETURN_IF_ERROR(move.Run(name));
  if (context.json()) {
    context.Print(Json{{"from", file.name},
                       {"to", name},
                       {"local", Json{{"from", file.local.string()}, {"to", to.string()}}}});
  }
  context.Say(StrCat(file.local.string(), " is ", to.string(), " now, and its mirror ", name));
  return kExitOk;
}

}  // namespace

void AddMv(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "mv", "Give a file another name; its history goes with it. Of a local file: on both sides");
  verb->add_option("OLD", options->from, kFileHelp)->required();
  verb->add_option("NEW", options->to,
                   "a name under the server's root; if OLD is a local file, a local path")
      ->required();
  verb->add_option("--name", options->name,
                   "the mirror's new name, if the local path does not lead to it");
  OnVerb(*verb, context, action, options, RunMove);
}

}  // namespace h5mirror::tools
