// h5mirror stats: the space of a history, version by version, and the gain of a prune.
#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "base/cli_checks.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/context/sheet.h"
#include "cli/output/text.h"
#include "cli/verbs/archive_text.h"
#include "cli/verbs/retention_flags.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

constexpr int64_t kPageMax = 1000;  // the protocol's own limit
// The first page reads the whole index, which may have millions of rows.
constexpr absl::Duration kTimeout = absl::Minutes(30);

struct Options {
  std::string file;
  RetentionFlags keep;
  int64_t limit = 0;  // 0: all
};

std::string Bytes(int64_t count) { return HumanBytes(static_cast<uint64_t>(count)); }

// The facts of the whole file in one page.
void ShowTotals(Context& context, const std::string& name, bool with_policy,
                const v1::GetHistoryStatsResponse& stats, const ArchiveState& archive) {
  Sheet sheet(context);
  sheet.Line("name", name);
  sheet.Line("versions", StrCat(stats.version_count()));
  sheet.Line("head", Bytes(stats.head_bytes()));
  sheet.Line("stage", Bytes(stats.stage_bytes()));
  sheet.Line("pages", StrCat(Bytes(stats.pages_bytes()), ", of which the next prune gives back ",
                             Bytes(stats.garbage_bytes()), " in any case"));
  if (archive) sheet.Line("archive", ArchivedText(*archive));
  sheet.Line("index", Bytes(stats.index_bytes()));
  sheet.Line("other", StrCat(Bytes(stats.other_bytes()), " (checksums, older heads)"));
  if (with_policy) {
    sheet.Line("prune", StrCat("would drop ", stats.prune_versions(), " of ", stats.version_count(),
                               " versions and give back about ", Bytes(stats.prune_bytes())));
  }
}

Json TotalsToJson(const std::string& name, bool with_policy,
                  const v1::GetHistoryStatsResponse& stats, const ArchiveState& archive) {
  const bool is_known = archive && archive->has_file_bytes();
  Json prune = nullptr;
  if (with_policy) {
    prune = Json{{"versions", stats.prune_versions()}, {"bytes", stats.prune_bytes()}};
  }
  return Json{{"file", name},
              {"version_count", stats.version_count()},
              {"head_bytes", stats.head_bytes()},
              {"stage_bytes", stats.stage_bytes()},
              {"pages_bytes", stats.pages_bytes()},
              {"index_bytes", stats.index_bytes()},
              {"other_bytes", stats.other_bytes()},
              {"garbage_bytes", stats.garbage_bytes()},
              {"archive_bytes", is_known ? Json(archive->file_bytes()) : Json(nullptr)},
              {"archive_objects", is_known ? Json(archive->file_objects()) : Json(nullptr)},
              {"prune", prune},
              {"versions", Json::array()}};
}

void AddRow(const v1::VersionStats& stats, absl::TimeZone zone, Table& table) {
  const v1::Version& version = stats.version();
  table.AddRow({StrCat(version.version()), LocalTime(FromProto(version.server_time()), zone),
                Bytes(stats.saved_bytes()), absl::StrJoin(version.tags(), ","), version.comment(),
                Bytes(version.size_bytes()), StrCat(version.changed_pages())});
}

absl::StatusOr<int> RunStats(Context& context, const Options& options) {
  v1::GetHistoryStatsRequest request;
  const bool with_policy = !IsEmpty(options.keep);
  if (with_policy) {
    H5M_ASSIGN_OR_RETURN(*request.mutable_policy(), ToPolicy(options.keep));
  }
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  H5M_RETURN_IF_ERROR(CheckTags(context, file, options.keep));
  request.set_name(file.name);
  Table table({{"VERSION", Align::kRight},
               {"TIME", Align::kLeft},
               {"SAVED", Align::kRight},
               {"TAGS", Align::kLeft, Narrow::kClip},
               {"COMMENT", Align::kLeft, Narrow::kClip},
               {"SIZE", Align::kRight, Narrow::kLeaveOut},
               {"PAGES", Align::kRight, Narrow::kLeaveOut}});
  Json json;
  int64_t left = options.limit > 0 ? options.limit : INT64_MAX;
  do {
    request.set_page_size(static_cast<int32_t>(std::min(left, kPageMax)));
    H5M_ASSIGN_OR_RETURN(const v1::GetHistoryStatsResponse page,
                         file.client->GetHistoryStats(request, kTimeout));
    if (request.page_token().empty()) {
      const ArchiveState archive = ArchiveOf(file.client->options(), file.name);
      json = TotalsToJson(file.name, with_policy, page, archive);
      ShowTotals(context, file.name, with_policy, page, archive);
    }
    for (const v1::VersionStats& stats : page.versions()) {
      if (context.json()) {
        Json version = VersionToJson(stats.version());
        version["saved_bytes"] = stats.saved_bytes();
        json["versions"].push_back(std::move(version));
      } else {
        AddRow(stats, context.streams().zone, table);
      }
    }
    if (!context.json()) context.Print(table);
    left -= page.versions_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && left > 0);
  if (context.json()) {
    json["complete"] = request.page_token().empty();
    context.Print(json);
  }
  return kExitOk;
}

}  // namespace

void AddStats(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "stats", "Show the space of a file's history, and with --keep-... the gain of a prune");
  verb->add_option("FILE", options->file, kFileHelp)->required();
  AddRetentionFlags(*verb, options->keep);
  verb->add_option("-n,--limit", options->limit, "list at most this many versions (default: all)")
      ->check(WholeNumber(1));
  OnVerb(*verb, context, action, options, RunStats);
}

}  // namespace h5mirror::tools
