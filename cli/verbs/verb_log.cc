// h5mirror log: the versions of a file, or those in which an object of it changed, newest first.
#include "cli/verbs/verb_log.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/context/file_at_version.h"
#include "cli/context/object_at_version.h"
#include "cli/output/text.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

constexpr int64_t kPageMax = 1000;  // the protocol's own limit

struct Options {
  std::string file;
  std::string since;
  std::string until;
  int64_t limit = 0;  // 0: all
};

Table MakeTable() {
  return Table(std::vector<Column>{{"VERSION", Align::kRight},
                                   {"TIME", Align::kLeft},
                                   {"TAGS", Align::kLeft, Narrow::kClip},
                                   {"COMMENT", Align::kLeft, Narrow::kClip},
                                   {"SIZE", Align::kRight, Narrow::kLeaveOut},
                                   {"CHANGED", Align::kRight, Narrow::kLeaveOut},
                                   {"USER", Align::kLeft, Narrow::kLeaveOut},
                                   {"PROGRAM", Align::kLeft, Narrow::kLeaveOut},
                                   {"HOST", Align::kLeft, Narrow::kLeaveOut},
                                   {"PAGES", Align::kRight, Narrow::kLeaveOut}});
}

void AddVersion(const v1::Version& version, absl::TimeZone zone, Table& table) {
  table.AddRow({StrCat(version.version()), LocalTime(FromProto(version.server_time()), zone),
                absl::StrJoin(version.tags(), ","), version.comment(),
                HumanBytes(static_cast<uint64_t>(version.size_bytes())),
                HumanBytes(static_cast<uint64_t>(version.changed_bytes())), UserOf(version),
                version.writer().program(), version.writer().host(),
                StrCat(version.changed_pages())});
}

// Why versions are missing, where the server dropped some early or makes none.
absl::StatusOr<std::string> HistoryNotice(rpc::Client& client, const std::string& name) {
  v1::GetFileRequest request;
  request.set_name(name);
  H5M_ASSIGN_OR_RETURN(const v1::FileStatus status, client.GetFile(request, absl::Seconds(30)));
  return status.history_notice();
}

// The error of a file that is not there; its name may have been meant as FILE@VERSION.
absl::Status NotLogged(Context& context, const std::string& file, const absl::Status& status) {
  const auto version = ParseFileAtVersion(file, context.streams().zone);
  if (!absl::IsNotFound(status) || !version.ok()) return status;
  return absl::NotFoundError(StrCat(ToStd(status.message()),
                                    ". log lists all versions, so its FILE ",
                                    "has no @VERSION: h5mirror log ", ShellWord(version->file),
                                    "; h5mirror show ", ShellWord(file), " tells of one version"));
}

absl::StatusOr<int> RunLog(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(v1::ListVersionsRequest request,
                       VersionsRequest(context, options.since, options.until));
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  Table table = MakeTable();
  Json versions = Json::array();
  request.set_name(file.name);
  int64_t left = options.limit > 0 ? options.limit : INT64_MAX;
  do {
    request.set_page_size(static_cast<int32_t>(std::min(left, kPageMax)));
    const absl::StatusOr<v1::ListVersionsResponse> listed = file.client->ListVersions(request);
    if (!listed.ok()) return NotLogged(context, options.file, listed.status());
    const v1::ListVersionsResponse& page = *listed;
    for (const v1::Version& version : page.versions()) {
      if (context.json()) {
        versions.push_back(VersionToJson(version));
      } else {
        AddVersion(version, context.streams().zone, table);
      }
    }
    if (!context.json()) context.Print(table);
    left -= page.versions_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && left > 0);
  H5M_ASSIGN_OR_RETURN(const std::string notice, HistoryNotice(*file.client, file.name));
  if (context.json()) {
    context.Print(Json{{"file", file.name},
                       {"versions", versions},
                       {"history_notice", notice.empty() ? Json(nullptr) : Json(notice)},
                       {"complete", request.page_token().empty()}});
  } else if (!notice.empty()) {
    context.Note(StrCat(file.name, ": history: ", notice));
  }
  return kExitOk;
}

}  // namespace

absl::StatusOr<v1::ListVersionsRequest> VersionsRequest(Context& context, const std::string& since,
                                                        const std::string& until) {
  v1::ListVersionsRequest request;
  absl::Time begin = absl::InfinitePast();
  if (!since.empty()) {
    H5M_ASSIGN_OR_RETURN(const TimeSpec spec, ParseTimeSpec(since, context.streams().zone));
    NoteLocalTime(context, spec);
    begin = spec.begin;
    *request.mutable_since_time() = ToProto(begin);
  }
  if (!until.empty()) {
    H5M_ASSIGN_OR_RETURN(const TimeSpec spec, ParseTimeSpec(until, context.streams().zone));
    if (spec.time < begin) {
      return absl::InvalidArgumentError(StrCat("--until ", until, " is before --since ", since));
    }
    NoteLocalTime(context, spec);
    *request.mutable_until_time() = ToProto(spec.time);
  }
  return request;
}

void AddLog(CLI::App& app, Context& context, const std::vector<std::string>& arguments,
            const ObjectLogRunner& runner, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "log", "List the versions of a file, or those that changed an object of it, newest first");
  verb->add_option("FILE[:/PATH]", options->file,
                   StrCat(kFileHelp, "; with a path: only versions that changed this object"))
      ->required();
  verb->add_option("--since", options->since,
                   "only versions of this time or later: 2026-11-03T14:00[Z|+hh:mm], 2026-11-03, "
                   "'yesterday 14:00' or '2h ago'; local without a zone");
  verb->add_option("--until", options->until, "only versions of this time or earlier");
  verb->add_option("-n,--limit", options->limit, "at most this many versions (default: all)")
      ->check(WholeNumber(1));
  verb->callback([&context, &action, &arguments, &runner, options] {
    action = [&context, &arguments, &runner, options]() -> absl::StatusOr<int> {
      const std::optional<ObjectInFile> object = ParseObjectInFile(options->file);
      if (!object) return RunLog(context, *options);
      if (runner == nullptr) return RunHdf5Helper("log FILE:/PATH", arguments);
      return runner(context, {.file = object->file,
                              .path = object->path,
                              .since = options->since,
                              .until = options->until,
                              .limit = options->limit});
    };
  });
}

}  // namespace h5mirror::tools
