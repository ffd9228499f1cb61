// h5mirror show: all that is known of a version, and where its pages lie.
#include <memory>

#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/context/sheet.h"
#include "cli/output/text.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

struct Options {
  std::string file;
  bool map = false;
};

std::string BytesOf(int64_t count) {
  const std::string human = HumanBytes(static_cast<uint64_t>(count));
  return count < 1024 ? human : StrCat(human, " (", count, ")");
}

void ShowVersion(Context& context, const std::string& name, const v1::Version& version) {
  const absl::TimeZone zone = context.streams().zone;
  Sheet sheet(context);
  sheet.Line("file", name);
  sheet.Line("version", StrCat(version.version(), ", cut ", CutText(version.cut()), ", generation ",
                               version.generation()));
  sheet.Line("server time", LocalTime(FromProto(version.server_time()), zone));
  sheet.Line("client time", LocalTime(FromProto(version.client_time()), zone));
  sheet.Line("user", UserOf(version));
  sheet.Line("claims to be",
             version.verified_user().empty() ? "" : version.writer().claimed_user());
  sheet.Line("host", version.writer().host());
  sheet.Line("program",
             version.writer().program().empty()
                 ? ""
                 : StrCat(version.writer().program(), " (pid ", version.writer().pid(), ")"));
  sheet.Line("size", BytesOf(version.size_bytes()));
  sheet.Line("changed", StrCat(version.changed_pages(), " pages, ",
                               BytesOf(version.changed_bytes()), " written"));
  sheet.Line("tags", absl::StrJoin(version.tags(), ", "));
  sheet.Line("comment", version.comment());
  const bool is_fork = version.source().kind() == v1::SOURCE_KIND_FORK;
  sheet.Line(is_fork ? "fork of" : "promoted", SourceText(version.source(), zone));
}

std::string_view PlaceName(v1::PagePlace place) {
  switch (place) {
    case v1::PAGE_PLACE_HOLE:
      return "hole";
    case v1::PAGE_PLACE_HEAD:
      return "head";
    case v1::PAGE_PLACE_STAGE:
      return "stage";
    case v1::PAGE_PLACE_PAGES:
      return "pages";
    case v1::PAGE_PLACE_PACKED:
      return "packed";
    case v1::PAGE_PLACE_ZEROS:
      return "zeros";
    case v1::PAGE_PLACE_LOST:
      return "lost";
    default:
      return "unknown";
  }
}

Json RunToJson(const v1::PageRun& run) {
  Json json{{"page", run.page()},
            {"page_count", run.page_count()},
            {"place", PlaceName(run.place())},
            {"file", nullptr},
            {"offset", nullptr}};
  if (!run.file().empty()) {
    json["file"] = run.file();
    json["offset"] = run.offset();
  }
  return json;
}

// Prints a map as it comes: a file of terabytes has more runs than fit into memory.
class MapPrinter {
 public:
  MapPrinter(Context& context, std::string name)
      : context_(context),
        name_(std::move(name)),
        table_({{"PAGES", Align::kRight},
                {"COUNT", Align::kRight},
                {"PLACE", Align::kLeft},
                {"OFFSET", Align::kRight},
                {"FILE", Align::kLeft}}) {}

  absl::Status Take(const v1::MapVersionResponse& message) {
    if (message.has_version()) Begin(message);
    for (const v1::PageRun& run : message.runs()) Add(run);
    if (!context_.json() && !table_.empty()) context_.Print(table_);
    return absl::OkStatus();
  }
  void End() {
    if (context_.json()) context_.streams().out << (any_ ? "\n  ]\n}\n" : "]\n}\n");
  }

 private:
  void Begin(const v1::MapVersionResponse& message) {
    if (!context_.json()) {
      ShowVersion(context_, name_, message.version());
      Sheet(context_).Line("page size", BytesOf(message.page_size_bytes()));
      context_.Say("");
      return;
    }
    // The document without its end, for the map to go on in it.
    std::string text = Dump(Json{{"file", name_},
                                 {"version", VersionToJson(message.version())},
                                 {"page_size_bytes", message.page_size_bytes()}});
    text.resize(text.size() - std::string_view("\n}").size());
    context_.streams().out << text << ",\n  \"map\": [";
  }
  void Add(const v1::PageRun& run) {
    if (context_.json()) {
      context_.streams().out << (any_ ? ",\n    " : "\n    ") << DumpLine(RunToJson(run));
    } else {
      const uint64_t last = run.page() + run.page_count() - 1;
      const bool one = run.page_count() == 1;
      table_.AddRow({one ? StrCat(run.page()) : StrCat(run.page(), "-", last),
                     StrCat(run.page_count()), std::string(PlaceName(run.place())),
                     run.file().empty() ? "" : StrCat(run.offset()), run.file()});
    }
    any_ = true;
  }

  Context& context_;
  const std::string name_;
  Table table_;
  bool any_ = false;
};

absl::StatusOr<int> RunShow(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedVersion file, ConnectVersion(context, options.file));
  if (options.map) {
    v1::MapVersionRequest request;
    request.set_name(file.name);
    request.set_version(file.version);
    MapPrinter printer(context, file.name);
    H5M_RETURN_IF_ERROR(file.client->MapVersion(
        request,
        [&printer](const v1::MapVersionResponse& message) { return printer.Take(message); }));
    printer.End();
    return kExitOk;
  }
  v1::GetVersionRequest request;
  request.set_name(file.name);
  request.set_version(file.version);
  H5M_ASSIGN_OR_RETURN(const v1::Version version, file.client->GetVersion(request));
  if (context.json()) {
    context.Print(Json{{"file", file.name}, {"version", VersionToJson(version)}});
  }
  ShowVersion(context, file.name, version);
  return kExitOk;
}

}  // namespace

void AddShow(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("show", "Describe a version, and where its pages lie");
  verb->add_option("FILE@VERSION", options->file, kVersionHelp)->required();
  verb->add_flag("--map", options->map, "list the places of the version's pages");
  OnVerb(*verb, context, action, options, RunShow);
}

}  // namespace h5mirror::tools
