// h5mirror rm, h5mirror undelete, h5mirror ls --removed.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/output/text.h"
#include "cli/verbs/cells_below.h"
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

struct Removals {
  std::vector<v1::RemovedFile> files;
  bool is_whole = true;
};

// Those that the server of `place` tells, the newest `count_max` at most.
absl::Status AddRemovals(rpc::Client& client, size_t count_max, Removals& all) {
  v1::ListRemovedFilesRequest request;
  size_t left = count_max;
  do {
    request.set_page_size(static_cast<int32_t>(std::min<size_t>(left, 1000)));
    H5M_ASSIGN_OR_RETURN(const v1::ListRemovedFilesResponse page, client.ListRemovedFiles(request));
    all.files.insert(all.files.end(), page.files().begin(), page.files().end());
    left -= static_cast<size_t>(page.files_size());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && left > 0);
  all.is_whole = all.is_whole && request.page_token().empty();
  return absl::OkStatus();
}

void PrintRemovals(Context& context, const std::vector<v1::RemovedFile>& files) {
  Table table({{"REMOVED", Align::kLeft},
               {"EXPIRES", Align::kLeft, Narrow::kLeaveOut},
               {"SIZE", Align::kRight, Narrow::kLeaveOut},
               {"USER", Align::kLeft, Narrow::kLeaveOut},
               {"ID", Align::kLeft},
               {"NAME", Align::kLeft}});
  const absl::TimeZone zone = context.streams().zone;
  for (const v1::RemovedFile& removed : files) {
    const bool verified = !removed.verified_user().empty();
    table.AddRow({LocalTime(FromProto(removed.remove_time()), zone),
                  LocalTime(FromProto(removed.expire_time()), zone),
                  HumanBytes(static_cast<uint64_t>(removed.disk_bytes())),
                  verified ? removed.verified_user()
                           : StrCat(removed.writer().claimed_user(), " (unverified)"),
                  removed.removal_id(), removed.name()});
  }
  context.Print(table);
}

}  // namespace

absl::StatusOr<int> ListRemoved(Context& context, rpc::Client& client, int64_t limit) {
  H5M_ASSIGN_OR_RETURN(const auto places, CellsBelow(context, ""));
  const size_t count_max = limit > 0 ? static_cast<size_t>(limit) : SIZE_MAX;
  ClusterDoor door(context);
  Removals all;
  std::vector<std::string> missing;
  std::map<std::string, absl::Status> asked;  // by ServedDirectory::server(): each once
  for (const ServedDirectory& place : places) {
    const auto known = asked.find(place.server());
    const bool is_known = known != asked.end() && (place.is_here || !place.address.empty());
    absl::Status listed = is_known ? known->second : absl::OkStatus();
    if (!is_known) {
      absl::StatusOr<rpc::Client*> server = place.is_here ? &client : door.Connect(place);
      listed = server.ok() ? AddRemovals(**server, count_max, all) : server.status();
      if (place.is_here || !place.address.empty()) asked[place.server()] = listed;
    }
    if (listed.ok()) continue;
    if (places.size() == 1 || !IsAway(listed)) return NameCell(place, listed);
    context.Note(
        StrCat(place.directory, ": its files are missing here: ", ToStd(listed.message())));
    missing.push_back(place.directory);
  }
  std::stable_sort(all.files.begin(), all.files.end(), [](const auto& a, const auto& b) {
    return FromProto(a.remove_time()) > FromProto(b.remove_time());
  });
  // A cell that moves meanwhile is listed by two servers.
  std::set<std::string> seen;
  std::erase_if(all.files, [&seen](const v1::RemovedFile& file) {
    return !seen.insert(file.removal_id()).second;
  });
  all.is_whole = all.is_whole && all.files.size() <= count_max && missing.empty();
  if (all.files.size() > count_max) all.files.resize(count_max);
  if (context.json()) {
    Json files = Json::array();
    for (const v1::RemovedFile& removed : all.files) files.push_back(RemovedToJson(removed));
    Json list = {{"files", files}, {"complete", all.is_whole}};
    if (places.size() > 1) list["missing"] = missing;
    context.Print(list);
  } else {
    PrintRemovals(context, all.files);
  }
  return missing.empty() ? kExitOk : kExitUnreachable;
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
