// h5mirror rm, h5mirror undelete, h5mirror ls --removed.
#include <memory>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/text.h"
#include "cli/verbs/verbs.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

struct RemoveOptions {
  std::string file;
};

struct UndeleteOptions {
  std::string file;
  std::string removal_id;
  std::string new_name;
};

Json RemovedToJson(const v1::RemovedFile& removed) {
  const bool verified = !removed.verified_user().empty();
  return Json{{"id", removed.removal_id()},
              {"name", removed.name()},
              {"removed", TimeToJson(FromProto(removed.remove_time()))},
              {"expires", TimeToJson(FromProto(removed.expire_time()))},
              {"size_bytes", removed.disk_bytes()},
              {"user", verified ? removed.verified_user() : removed.writer().claimed_user()},
              {"user_verified", verified},
              {"host", removed.writer().host()}};
}

absl::StatusOr<int> RunRemove(Context& context, const RemoveOptions& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  v1::RemoveFileRequest request;
  request.set_name(file.name);
  *request.mutable_writer() = LocalWriter();
  H5M_ASSIGN_OR_RETURN(const v1::RemovedFile removed, file.client->RemoveFile(request));
  if (context.json()) context.Print(Json{{"file", file.name}, {"removed", RemovedToJson(removed)}});
  context.Say(StrCat(file.name, " and its history are removed; until ",
                     LocalTime(FromProto(removed.expire_time()), context.streams().zone),
                     " this brings them back: h5mirror undelete --id ", removed.removal_id()));
  if (file.record.has_value()) {
    context.Note(StrCat("the local file is as it was; ", file.local.string(),
                        " will be refused as diverged until it is pushed or re-created"));
  }
  return kExitOk;
}

absl::StatusOr<int> RunUndelete(Context& context, const UndeleteOptions& options) {
  if (options.file.empty() == options.removal_id.empty()) {
    return absl::InvalidArgumentError("name a FILE or an --id; see h5mirror ls --removed");
  }
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect());
  v1::UndeleteFileRequest request;
  request.set_name(options.file);
  request.set_removal_id(options.removal_id);
  request.set_new_name(options.new_name);
  absl::StatusOr<v1::FileStatus> file = client->UndeleteFile(request);
  if (absl::IsAlreadyExists(file.status())) {
    return absl::AlreadyExistsError(StrCat(file.status().message(), ", with --as NEW"));
  }
  H5M_RETURN_IF_ERROR(file.status());
  if (context.json()) {
    context.Print(Json{{"file", file->name()}, {"version_count", file->version_count()}});
  }
  context.Say(StrCat(file->name(), " is back, with ", file->version_count(),
                     file->version_count() == 1 ? " version" : " versions"));
  return kExitOk;
}

}  // namespace

absl::StatusOr<int> ListRemoved(Context& context, rpc::Client& client, int64_t limit) {
  v1::ListRemovedFilesRequest request;
  Json files = Json::array();
  Table table({{"REMOVED", Align::kLeft},
               {"EXPIRES", Align::kLeft, Narrow::kLeaveOut},
               {"SIZE", Align::kRight, Narrow::kLeaveOut},
               {"USER", Align::kLeft, Narrow::kLeaveOut},
               {"ID", Align::kLeft},
               {"NAME", Align::kLeft}});
  int64_t left = limit > 0 ? limit : INT64_MAX;
  do {
    request.set_page_size(static_cast<int32_t>(std::min<int64_t>(left, 1000)));
    H5M_ASSIGN_OR_RETURN(const v1::ListRemovedFilesResponse page, client.ListRemovedFiles(request));
    for (const v1::RemovedFile& removed : page.files()) {
      if (context.json()) {
        files.push_back(RemovedToJson(removed));
        continue;
      }
      const absl::TimeZone zone = context.streams().zone;
      const bool verified = !removed.verified_user().empty();
      table.AddRow({LocalTime(FromProto(removed.remove_time()), zone),
                    LocalTime(FromProto(removed.expire_time()), zone),
                    HumanBytes(static_cast<uint64_t>(removed.disk_bytes())),
                    verified ? removed.verified_user()
                             : StrCat(removed.writer().claimed_user(), " (unverified)"),
                    removed.removal_id(), removed.name()});
    }
    left -= page.files_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && left > 0);
  if (context.json()) {
    context.Print(Json{{"files", files}, {"complete", request.page_token().empty()}});
  } else {
    context.Print(table);
  }
  return kExitOk;
}

void AddRm(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<RemoveOptions>();
  CLI::App* verb = app.add_subcommand(
      "rm", "Remove a file and its history from the server; `undelete` brings them back");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  OnVerb(*verb, context, action, options, RunRemove);
}

void AddUndelete(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<UndeleteOptions>();
  CLI::App* verb = app.add_subcommand("undelete", "Bring a removed file and its history back");
  verb->add_option("FILE", options->file, "the former name; its newest removal comes back");
  verb->add_option("--id", options->removal_id, "one removal, as h5mirror ls --removed lists it");
  verb->add_option("--as", options->new_name, "another name (default: the former name)");
  OnVerb(*verb, context, action, options, RunUndelete);
}

}  // namespace h5mirror::tools
