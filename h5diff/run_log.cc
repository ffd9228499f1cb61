#include "h5diff/run_log.h"

#include <ostream>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/context/exit_code.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "h5diff/change_text.h"
#include "h5diff/object_history.h"
#include "h5diff/version_walk.h"

namespace h5mirror::tools {
namespace {

using Kind = ObjectEvent::Kind;

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kAppeared:
      return "appeared";
    case Kind::kFirstSeen:
      return "first_seen";
    case Kind::kChanged:
      return "changed";
    case Kind::kReplaced:
      return "replaced";
    case Kind::kWent:
      return "went";
    case Kind::kUnknown:
      return "unknown";
  }
  return "unknown";
}

// One line each.
std::vector<std::string> LinesOf(const ObjectEvent& event) {
  std::vector<std::string> lines;
  switch (event.kind) {
    case Kind::kAppeared:
      lines.push_back(StrCat("appeared: ", event.object));
      break;
    case Kind::kFirstSeen:
      lines.push_back(StrCat("was there: ", event.object, "; older versions were dropped"));
      break;
    case Kind::kReplaced:
      lines.push_back(StrCat("replaced by another ", event.object));
      break;
    case Kind::kWent:
      // The version first: a narrow terminal clips the end, and without it nobody finds the object.
      lines.push_back(StrCat("went; version ", event.before, " has it: ", event.object));
      break;
    case Kind::kUnknown:
      lines.push_back(StrCat("could not be looked into: ", event.note));
      break;
    case Kind::kChanged:
      break;
  }
  for (const Change& change : event.changes) lines.push_back(ChangeSummary(change));
  if (event.before > 0 && event.version.version() - event.before > 1) {
    lines.back() += StrCat(" (since version ", event.before, ")");
  }
  return lines;
}

Json EventToJson(const ObjectEvent& event) {
  Json changes = Json::array();
  for (const Change& change : event.changes) changes.push_back(ChangeToJson(change));
  Json json{{"event", KindName(event.kind)},
            {"version", VersionToJson(event.version)},
            {"before", event.before > 0 ? Json(event.before) : Json(nullptr)},
            {"object", event.object.empty() ? Json(nullptr) : Json(event.object)},
            {"changes", std::move(changes)}};
  if (!event.note.empty()) json["note"] = event.note;
  return json;
}

// As most findings are, so that rows which are printed one by one stand in columns.
constexpr size_t kWhatColumns = 32;

// Prints each event of the object as it is found, or one document at the end.
class Printer {
 public:
  explicit Printer(Context& context) : context_(context) {}

  void Add(const ObjectEvent& event) {
    ++count_;
    if (context_.json()) {
      events_.push_back(EventToJson(event));
      return;
    }
    const v1::Version& version = event.version;
    std::vector<std::string> first{
        StrCat(version.version()),
        LocalTime(FromProto(version.server_time()), context_.streams().zone)};
    std::vector<std::string> last{UserOf(version), version.writer().program(),
                                  version.writer().host()};
    for (const std::string& line : LinesOf(event)) {
      // Blanks: the table writes "-" for an empty cell.
      std::vector<std::string> cells = std::exchange(first, {" ", " "});
      cells.push_back(line);
      for (std::string& cell : std::exchange(last, {" ", " ", " "}))
        cells.push_back(std::move(cell));
      table_.AddRow(cells);
    }
    context_.Print(table_);
    context_.streams().out << std::flush;
  }
  void End(Json document, bool complete) {
    if (!context_.json()) return;
    document["events"] = std::move(events_);
    document["complete"] = complete;
    context_.Print(document);
  }
  int64_t count() const { return count_; }

 private:
  Context& context_;
  Table table_{std::vector<Column>{{"VERSION", Align::kRight},
                                   {"TIME", Align::kLeft},
                                   {"WHAT", Align::kLeft, Narrow::kClip, kWhatColumns},
                                   {"USER", Align::kLeft, Narrow::kLeaveOut},
                                   {"PROGRAM", Align::kLeft, Narrow::kLeaveOut},
                                   {"HOST", Align::kLeft, Narrow::kLeaveOut}}};
  Json events_ = Json::array();
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<int> RunObjectLog(Context& context, const ObjectLogOptions& options) {
  H5M_ASSIGN_OR_RETURN(v1::ListVersionsRequest request,
                       VersionsRequest(context, options.since, options.until));
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  request.set_name(file.name);
  Printer printer(context);
  Progress progress(context.streams(), StrCat("look for changes of ", options.path), 0, "versions");
  bool any_unknown = false;
  ObjectHistory history(*file.client, file.name, options.path, [&](const ObjectEvent& event) {
    any_unknown = any_unknown || event.kind == Kind::kUnknown;
    progress.Wipe();
    printer.Add(event);
    return options.limit == 0 || printer.count() < options.limit;
  });
  int64_t seen = 0;
  H5M_ASSIGN_OR_RETURN(const WalkEnd end,
                       ForEachVersion(*file.client, request, [&](const v1::Version& version) {
                         progress.Update(static_cast<uint64_t>(++seen));
                         return history.Add(version);
                       }));
  progress.Wipe();
  if (end != WalkEnd::kStopped) history.End(end == WalkEnd::kOldest);
  if (!history.was_there() && !any_unknown) {
    return absl::NotFoundError(StrCat(file.name, " has no ", options.path, " in any of the ", seen,
                                      " versions looked at"));
  }
  printer.End(Json{{"file", file.name},
                   {"path", options.path},
                   {"versions_seen", seen},
                   {"versions_opened", history.versions_opened()}},
              end == WalkEnd::kOldest && !any_unknown);
  return any_unknown ? kExitFailure : kExitOk;
}

}  // namespace h5mirror::tools
