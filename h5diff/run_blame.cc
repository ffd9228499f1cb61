#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/connected_file.h"
#include "cli/context/exit_code.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "h5diff/object_history.h"
#include "h5diff/run_log.h"
#include "h5diff/version_walk.h"
#include "hdf5/source_driver.h"

namespace h5mirror::tools {
namespace {

using Kind = ObjectEvent::Kind;

struct Blamed {
  AttributeText attribute;
  std::optional<v1::Version> version;  // unset: still looked for
  bool or_earlier = false;             // older versions were dropped
};

// The attributes as the version has them.
absl::StatusOr<std::vector<AttributeText>> AttributesAt(rpc::Client& client,
                                                        const std::string& file,
                                                        const std::string& path,
                                                        const v1::Version& version) {
  VersionPages pages(client, {.file = file, .versions = {version, version}}, ExtentSet());
  const auto read = [&]() -> absl::StatusOr<std::vector<AttributeText>> {
    H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
    H5M_ASSIGN_OR_RETURN(const hdf5::SourceFile opened,
                         hdf5::SourceFile::Open(pages.source(Side::kNew), nullptr));
    H5M_ASSIGN_OR_RETURN(const FoundObject found, FindObject(opened.id(), path));
    if (found.object) return ReadAttributeTexts(found.object->id.get());
    return absl::NotFoundError(StrCat(file, "@", version.version(), " has no object ", path,
                                      "; h5mirror log ", ShellWord(StrCat(file, ":", path)),
                                      " lists its history"));
  };
  auto attributes = read();
  H5M_RETURN_IF_ERROR(pages.error());
  return attributes;
}

// Each attribute is the work of the newest version that changed it, or made the object. True: some
// are still without one.
bool Blame(const ObjectEvent& event, std::vector<Blamed>& attributes) {
  const bool of_all = event.kind == Kind::kAppeared || event.kind == Kind::kFirstSeen ||
                      event.kind == Kind::kReplaced;
  const auto is_changed = [&](const std::string& name) {
    return std::any_of(event.changes.begin(), event.changes.end(), [&](const Change& change) {
      return change.what == "attribute" && change.name == name;
    });
  };
  bool any_left = false;
  for (Blamed& each : attributes) {
    if (each.version) continue;
    if (of_all || is_changed(each.attribute.name)) {
      each.version = event.version;
      // A version between that was dropped may have made it.
      each.or_earlier = event.kind == Kind::kFirstSeen ||
                        (event.before > 0 && event.version.version() - event.before > 1);
    } else {
      any_left = true;
    }
  }
  return any_left;
}

void Print(Context& context, const std::string& file, const std::string& path,
           const std::vector<Blamed>& attributes) {
  Table table(std::vector<Column>{{"ATTRIBUTE", Align::kLeft, Narrow::kClip},
                                  {"VALUE", Align::kLeft, Narrow::kClip},
                                  {"VERSION", Align::kRight},
                                  {"TIME", Align::kLeft},
                                  {"USER", Align::kLeft, Narrow::kLeaveOut},
                                  {"PROGRAM", Align::kLeft, Narrow::kLeaveOut},
                                  {"HOST", Align::kLeft, Narrow::kLeaveOut}});
  Json list = Json::array();
  for (const Blamed& each : attributes) {
    const v1::Version version = each.version.value_or(v1::Version());
    list.push_back(Json{{"name", each.attribute.name},
                        {"value", each.attribute.value},
                        {"version", each.version ? VersionToJson(version) : Json(nullptr)},
                        {"or_earlier", each.or_earlier}});
    table.AddRow(
        {each.attribute.name, each.attribute.value,
         each.version ? StrCat(version.version(), each.or_earlier ? " or earlier" : "") : "?",
         each.version ? LocalTime(FromProto(version.server_time()), context.streams().zone) : "-",
         each.version ? UserOf(version) : "-", version.writer().program(),
         version.writer().host()});
  }
  if (context.json()) {
    context.Print(Json{{"file", file}, {"path", path}, {"attributes", std::move(list)}});
  } else if (!attributes.empty()) {
    context.Print(table);
  }
}

}  // namespace

absl::StatusOr<int> RunBlame(Context& context, const ObjectLogOptions& options) {
  H5M_ASSIGN_OR_RETURN(const ConnectedFile file, ConnectFile(context, options.file));
  v1::ListVersionsRequest request;
  request.set_name(file.name);
  std::vector<Blamed> attributes;
  ObjectHistory history(*file.client, file.name, options.path, [&](const ObjectEvent& event) {
    if (event.kind != Kind::kUnknown) return Blame(event, attributes);
    context.Note(StrCat(file.name, "@", event.version.version(),
                        " could not be looked into, and may have been the one: ", event.note));
    return true;
  });
  int64_t seen = 0;
  {
    Progress progress(context.streams(), StrCat("look for changes of ", options.path), 0,
                      "versions");
    const auto take = [&](const v1::Version& version) -> absl::StatusOr<bool> {
      if (seen == 0) {
        H5M_ASSIGN_OR_RETURN(const std::vector<AttributeText> found,
                             AttributesAt(*file.client, file.name, options.path, version));
        for (const AttributeText& each : found) attributes.emplace_back().attribute = each;
        if (attributes.empty()) return false;
      }
      progress.Update(static_cast<uint64_t>(++seen));
      return history.Add(version);
    };
    H5M_ASSIGN_OR_RETURN(const WalkEnd end, ForEachVersion(*file.client, request, take));
    history.End(end == WalkEnd::kOldest);
  }
  Print(context, file.name, options.path, attributes);
  if (attributes.empty()) context.Say(StrCat(options.path, " has no attributes"));
  return kExitOk;
}

}  // namespace h5mirror::tools
