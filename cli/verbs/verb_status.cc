// h5mirror status: a server, or a file on both sides.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_arg.h"
#include "cli/context/sheet.h"
#include "cli/output/mirror_text.h"
#include "cli/output/text.h"
#include "cli/verbs/archive_text.h"
#include "cli/verbs/standing_report.h"
#include "cli/verbs/usage_text.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  int64_t wait_seconds = -1;  // < 0: do not wait
};

std::string Bytes(int64_t count) { return HumanBytes(static_cast<uint64_t>(count)); }

void ShowServer(Context& context, const v1::GetServerResponse& server,
                const std::optional<v1::Usage>& usage, const ArchiveState& archive,
                const rpc::ClientOptions& options) {
  Sheet sheet(context);
  const absl::Time start = FromProto(server.start_time());
  sheet.Line("server", StrCat(options.server, options.ca_pem.empty() ? " (plain text)" : " (TLS)"));
  sheet.Line("version", StrCat(server.server_version(), ", protocol ", server.protocol().oldest(),
                               "-", server.protocol().newest()));
  if (!server.root().empty()) {  // Else the server does not tell this user.
    sheet.Line("root", server.root());
    sheet.Line("free", Bytes(server.free_bytes()));
    sheet.Line("started", LocalTime(start, context.streams().zone));
    sheet.Line("memory",
               StrCat(Bytes(server.memory_used_bytes()), " of ", Bytes(server.memory_max_bytes())));
    sheet.Line("open",
               StrCat(server.open_files(), " files, ", server.open_sessions(), " sessions"));
  }
  sheet.Line("you are",
             server.verified_user().empty() ? "not asked for a token" : server.verified_user());
  // Tables, and the files of a token, may leave fewer to a file: the server tells that of a file.
  const std::string rights = absl::StrJoin(server.rights(), ", ");
  sheet.Line("rights at most", rights.empty() ? "none, to any file" : rights);
  if (usage) sheet.Line("nearly used", absl::StrJoin(NearlyUsedUp(*usage), ", "));
  if (archive) sheet.Line("archive", ArchiveText(*archive, context.streams().zone));
}

// The caller's own, to one file; nullopt: the server does not tell.
using FileRights = std::optional<std::vector<std::string>>;

FileRights RightsTo(rpc::Client& client, const std::string& name) {
  const absl::StatusOr<v1::GetServerResponse> answer = client.GetServer(name);
  if (!answer.ok()) return std::nullopt;
  return std::vector<std::string>(answer->rights().begin(), answer->rights().end());
}

// The caller's own usage; unset if the server does not know the call, or refuses it.
std::optional<v1::Usage> UsageOf(rpc::Client& client) {
  const absl::StatusOr<v1::GetUsageResponse> answer = client.GetUsage({});
  if (!answer.ok() || answer->usages().empty()) return std::nullopt;
  return answer->usages(0);
}

absl::StatusOr<int> RunServerStatus(Context& context) {
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect());
  H5M_ASSIGN_OR_RETURN(const v1::GetServerResponse server, client->GetServer());
  const std::optional<v1::Usage> usage = UsageOf(*client);
  const ArchiveState archive = ArchiveOf(client->options());
  if (context.json()) {
    Json json = ServerToJson(server, client->options().server);
    json["nearly_used"] = usage ? NearlyUsedUp(*usage) : std::vector<std::string>();
    json["archive"] = archive ? ArchiveToJson(*archive) : Json(nullptr);
    context.Print(json);
  } else {
    ShowServer(context, server, usage, archive, client->options());
  }
  return kExitOk;
}

// The newest version was compared with the local file since, and they differ.
bool IsFoundDiffering(const v1::FileStatus& status) {
  const v1::MirrorCheck& check = status.last_check();
  return status.has_last_check() && check.differing_bytes() > 0 &&
         check.version() == status.newest_version().version();
}

// The state of a file for which the server reports no mirror.
std::string StateWithoutMirror(const v1::FileStatus& status) {
  if (status.has_lease()) return "being written";
  if (status.has_forked_from() && status.origin().path().empty()) {
    return StrCat("a fork that no machine has: h5mirror recover LOCAL --name ",
                  ShellWord(status.name()), " brings it to one");
  }
  return "nobody writes it, and the server was not told of a close";
}

std::string WriterText(const v1::LeaseHolder& lease, absl::TimeZone zone) {
  const v1::Writer& writer = lease.writer();
  const std::string program =
      writer.program().empty()
          ? "a command"
          : StrCat(writer.program(), " (pid ", writer.pid(), " on ", writer.host(), ")");
  return StrCat(program, " since ", LocalTime(FromProto(lease.since_time()), zone));
}

// The state from both sides, and the way out.
void ShowVerdict(Context& context, const FileArg& file, const std::optional<v1::FileStatus>& status,
                 const std::optional<StandingReport>& report) {
  Sheet sheet(context);
  const bool is_level = report ? report->standing == Standing::kLevel
                               : status && status->mirror().state() == v1::MIRROR_STATE_IN_SYNC;
  if (is_level && status && IsFoundDiffering(*status)) {
    sheet.Line("state", "the two sides differ, as a comparison found; see `checked`");
    const std::string local = report ? file.local.string() : "LOCAL";
    sheet.Line("way out", StrCat("h5mirror resync --from local ", local,
                                 ", if the local file is right, else --from remote"));
  } else if (report) {
    sheet.Line("state", report->detail);
    sheet.Line("way out", report->way_out);
  } else if (status) {
    const std::string mirror = MirrorLine(status->mirror(), context.streams().zone);
    sheet.Line("state", mirror.empty() ? StateWithoutMirror(*status) : mirror);
  }
  if (report) sheet.Line("local", file.local.string());
}

// The server knows the bytes that arrived, and not the later changes of the local file.
std::string ServersView(const v1::FileStatus& status, const StandingReport& report,
                        absl::TimeZone zone) {
  const bool is_old =
      status.mirror().state() == v1::MIRROR_STATE_IN_SYNC && report.standing != Standing::kLevel;
  return StrCat(is_old ? "as of the last close: " : "", MirrorLine(status.mirror(), zone));
}

std::string CutsText(const v1::FileStatus& status) {
  const std::string newest = StrCat("newest ", CutText(status.last_cut()));
  const auto step = [&](std::string_view what, int64_t cut) {
    return cut == status.last_cut() ? "" : StrCat(", ", what, " ", CutText(cut));
  };
  const std::string behind =
      step("durable", status.durable_cut()) + step("in the head", status.applied_cut());
  return newest + (behind.empty() ? ", durable and in the head" : behind);
}

void ShowFile(Context& context, const v1::FileStatus& status,
              const std::optional<StandingReport>& report) {
  Sheet sheet(context);
  const v1::Version& newest = status.newest_version();
  sheet.Line("name", status.name());
  sheet.Line("size", Bytes(status.size_bytes()));
  sheet.Line("newest", newest.version() == 0 ? "no version yet"
                                             : StrCat("version ", newest.version(), " of ",
                                                      LocalTime(FromProto(newest.server_time()),
                                                                context.streams().zone)));
  sheet.Line("tags", absl::StrJoin(newest.tags(), ", "));
  sheet.Line("versions", StrCat(status.version_count(), ", generation ", status.generation()));
  sheet.Line("cuts", CutsText(status));
  const v1::Origin& origin = status.origin();
  sheet.Line("origin", origin.path().empty() ? "none" : StrCat(origin.host(), ":", origin.path()));
  sheet.Line("owner", status.owner());
  sheet.Line("fork of", SourceText(status.forked_from(), context.streams().zone));
  if (status.has_lease()) {
    sheet.Line("writer", WriterText(status.lease(), context.streams().zone));
  } else {
    sheet.Line("writer", "nobody");
  }
  if (report) sheet.Line("mirror", ServersView(status, *report, context.streams().zone));
  if (status.has_last_check()) {
    const v1::MirrorCheck& check = status.last_check();
    sheet.Line(
        "checked",
        StrCat(LocalTime(FromProto(check.check_time()), context.streams().zone),
               ", against version ", check.version(),
               check.differing_bytes() == 0
                   ? ": equal"
                   : StrCat(": differs in ", Bytes(check.differing_bytes()), ", last equal ",
                            LocalTime(FromProto(check.equal_time()), context.streams().zone))));
  }
  sheet.Line("on disk", StrCat("stage ", Bytes(status.stage_bytes()), ", history ",
                               Bytes(status.history_bytes())));
  sheet.Line("history", status.history_notice());
}

absl::StatusOr<v1::FileStatus> GetStatus(rpc::Client& client, const Options& options,
                                         const std::string& name) {
  v1::GetFileRequest request;
  request.set_name(name);
  request.set_settle(options.wait_seconds >= 0);
  const auto timeout = absl::Seconds(options.wait_seconds >= 0 ? options.wait_seconds : 30);
  absl::StatusOr<v1::FileStatus> status = client.GetFile(request, timeout);
  if (absl::IsDeadlineExceeded(status.status()) && request.settle()) {
    return absl::DeadlineExceededError(
        StrCat(name, ": the head did not hold the newest durable cut within ", options.wait_seconds,
               " s; wait longer with --wait=SECONDS"));
  }
  return status;
}

Json LocalToJson(const FileArg& file, const StandingReport& report) {
  return Json{{"path", file.local.string()},
              {"standing", StandingName(report.standing)},
              {"detail", report.detail},
              {"way_out", report.way_out},
              {"record", RecordToJson(*file.record)}};
}

std::optional<FileStat> StatIfThere(const FileArg& file) {
  const absl::StatusOr<FileStat> stat = StatFile(file.local);
  return stat.ok() ? std::optional(*stat) : std::nullopt;
}

// The result for one file: text is printed already, the JSON document is not.
struct Told {
  Json json;
  int code = kExitOk;
};

std::string_view WhyNotAsked(const absl::Status& away) {
  if (absl::IsUnavailable(away)) return ", which is away";
  if (absl::IsPermissionDenied(away)) return ", which you may not ask";
  return ", which is not one of your configured servers and was not asked";
}

// Shows the local record, if the server cannot be asked or is not one that the user has configured.
Told ShowRecord(Context& context, const FileArg& file, const absl::Status& away) {
  const LocalRecord& record = *file.record;
  const StandingReport report = JudgeRecord(file.local.string(), record, StatIfThere(file));
  const bool is_away = absl::IsUnavailable(away);
  Sheet sheet(context);
  sheet.Line("state", StrCat(report.detail, ", as the record says: the server ",
                             is_away ? "is away" : "was not asked"));
  sheet.Line("way out", report.way_out);
  sheet.Line("local", file.local.string());
  sheet.Line("name", file.name);
  sheet.Line("server", StrCat(record.server, WhyNotAsked(away)));
  sheet.Line("durable", record.cut == 0
                            ? "no cut that is known here"
                            : StrCat("cut ", CutText(record.cut), ", version ", record.version));
  sheet.Line("since", LocalTime(record.since, context.streams().zone));
  context.Note(ToStd(away.message()));
  return {Json{{"name", file.name},
               {"exists", nullptr},
               {"server", record.server},
               {"error", std::string(away.message())},
               {"local", LocalToJson(file, report)}},
          ExitCodeFor(away)};
}

absl::StatusOr<Told> TellFile(Context& context, const Options& options, const FileArg& file) {
  const absl::StatusOr<rpc::Client*> connected = context.Connect(file);
  const bool not_asked = absl::IsUnavailable(connected.status()) ||
                         absl::IsFailedPrecondition(connected.status()) ||
                         absl::IsPermissionDenied(connected.status());
  if (not_asked && file.record.has_value()) {
    return ShowRecord(context, file, connected.status());
  }
  H5M_RETURN_IF_ERROR(connected.status());
  rpc::Client* const client = *connected;
  const absl::StatusOr<v1::FileStatus> answer = GetStatus(*client, options, file.name);
  if (absl::IsUnavailable(answer.status()) && file.record.has_value()) {
    return ShowRecord(context, file, answer.status());
  }
  if (!answer.ok() && !(absl::IsNotFound(answer.status()) && file.record.has_value())) {
    return answer.status();
  }
  std::optional<v1::FileStatus> status;
  if (answer.ok()) status = *answer;
  std::optional<StandingReport> report;
  if (file.record.has_value()) {
    report = JudgeStanding(file.local.string(), *file.record, StatIfThere(file), status,
                           client->options().server);
  }
  ShowVerdict(context, file, status, report);
  if (status.has_value()) ShowFile(context, *status, report);
  const FileRights rights = RightsTo(*client, file.name);
  if (rights) Sheet(context).Line("rights", absl::StrJoin(*rights, ", "));
  Json json = status.has_value() ? StatusToJson(*status) : Json{{"name", file.name}};
  json["exists"] = status.has_value();
  json["server"] = client->options().server;
  if (rights) json["rights"] = *rights;
  json["local"] = report.has_value() ? LocalToJson(file, *report) : Json(nullptr);
  return Told{std::move(json), status.has_value() ? kExitOk : kExitNotFound};
}

// Shows each mirror in turn. A server that cannot be asked does not stop the others; the first
// failure gives the exit code.
absl::StatusOr<int> TellMirrors(Context& context, const Options& options,
                                const std::vector<FileArg>& mirrors) {
  Json all = Json::array();
  int code = kExitOk;
  for (const FileArg& mirror : mirrors) {
    context.Say(StrCat(mirror.server, ":"));
    const absl::StatusOr<Told> told = TellFile(context, options, mirror);
    if (!told.ok()) context.Note(StrCat(mirror.server, ": ", told.status().message()));
    all.push_back(told.ok() ? told->json
                            : Json{{"name", mirror.name},
                                   {"server", mirror.server},
                                   {"error", std::string(told.status().message())}});
    if (code == kExitOk) code = told.ok() ? told->code : ExitCodeFor(told.status());
  }
  if (context.json()) {
    Json json = all[0];  // As of a file with one mirror, of the one that is level if one is.
    json["mirrors"] = std::move(all);
    context.Print(json);
  }
  return code;
}

absl::StatusOr<int> RunFileStatus(Context& context, const Options& options) {
  const WantedServer& server = context.flags().client.server;
  H5M_ASSIGN_OR_RETURN(const FileArg file, ResolveFileArg(options.file, server));
  if (file.record.has_value()) {
    H5M_ASSIGN_OR_RETURN(const std::vector<FileArg> mirrors,
                         ResolveMirrorsOf(options.file, server));
    if (mirrors.size() > 1) return TellMirrors(context, options, mirrors);
  }
  H5M_ASSIGN_OR_RETURN(const Told told, TellFile(context, options, file));
  if (context.json()) context.Print(told.json);
  return told.code;
}

}  // namespace

void AddStatus(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("status", "Describe a file on both sides, or the server");
  verb->add_option("FILE", options->file,
                   std::string(kFileHelp) + "; without it the server is described");
  // A flag, so that `--wait FILE` does not take FILE for its value.
  const CLI::Option* wait =
      verb->add_flag("-w{60},--wait{60}", options->wait_seconds,
                     "wait until the head holds the newest durable cut, at most 60 s; "
                     "--wait=SECONDS sets another limit");
  verb->callback([&context, &action, options, wait] {
    if (wait->count() == 0) options->wait_seconds = -1;  // CLI11 counts flags from 0.
    action = [&context, options]() -> absl::StatusOr<int> {
      return options->file.empty() ? RunServerStatus(context) : RunFileStatus(context, *options);
    };
  });
}

}  // namespace h5mirror::tools
