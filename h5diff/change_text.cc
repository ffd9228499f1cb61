#include "h5diff/change_text.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/strings.h"
#include "cli/output/text.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kRangesShown = 10;

std::string Tuple(const std::vector<uint64_t>& values) {
  return StrCat("(", absl::StrJoin(values, ", "), values.size() == 1 ? ",)" : ")");
}

std::string Counted(uint64_t count, std::string_view one) {
  return StrCat(count, " ", one, count == 1 ? "" : "s");
}

std::string RangeText(const Change& change, const ElementRange& range) {
  const std::string place =
      change.chunked ? StrCat("chunk at ", Tuple(range.offset), " of ", Tuple(range.shape), ": ")
                     : StrCat("from ", Tuple(range.offset), ": ");
  std::string text = range.element_count > 0 ? Counted(range.element_count, "element") : "";
  if (!range.note.empty()) StrAppend(&text, text.empty() ? "" : ", ", range.note);
  return place + text;
}

std::string DataSummary(const Change& change) {
  return StrCat("data: ", Counted(change.element_count, "element"), " in ",
                Counted(change.range_count, change.chunked ? "chunk" : "run"));
}

std::string DataText(const Change& change) {
  std::string text = DataSummary(change);
  const size_t shown = std::min(change.ranges.size(), kRangesShown);
  for (size_t i = 0; i < shown; ++i) {
    StrAppend(&text, "\n      ", RangeText(change, change.ranges[i]));
  }
  if (change.range_count > shown) StrAppend(&text, "\n      ", change.range_count - shown, " more");
  return text;
}

std::string PropertyText(const Change& change) {
  if (change.what == "data") return DataText(change);
  const auto value = [](bool had, const std::string& text) { return had ? text : "(none)"; };
  return StrCat(change.what == "link" ? std::string(change.object) : change.what,
                change.name.empty() ? "" : " " + Printable(change.name), ": ",
                value(change.had_old, change.old_value), " -> ",
                value(change.has_new, change.new_value));
}

std::string_view KindName(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return "added";
    case ChangeKind::kRemoved:
      return "removed";
    case ChangeKind::kMoved:
      return "moved";
    case ChangeKind::kChanged:
      return "changed";
    default:
      return "unknown";
  }
}

Json ValueOrNull(bool has, const std::string& value) { return has ? Json(value) : Json(nullptr); }

}  // namespace

std::string ChangeText(const Change& change) {
  const std::string path = Printable(change.path);
  switch (change.kind) {
    case ChangeKind::kAdded:
      return StrCat("+ ", path, "  ", Printable(change.new_value));
    case ChangeKind::kRemoved:
      return StrCat("- ", path, "  ", Printable(change.old_value));
    case ChangeKind::kMoved:
      return StrCat("> ", path, "  ", Printable(change.new_value), ", was ",
                    Printable(change.old_value));
    case ChangeKind::kUnknown:
      return StrCat("? ", path, "  ", change.what, change.name.empty() ? "" : " ",
                    Printable(change.name), ": ", Printable(change.note));
    default:
      return StrCat("~ ", path, "  ", PropertyText(change));
  }
}

std::string ChangeSummary(const Change& change) {
  // A group's links are other objects' paths.
  if (change.kind != ChangeKind::kChanged || change.what == "link") return ChangeText(change);
  return change.what == "data" ? DataSummary(change) : PropertyText(change);
}

Json ChangeToJson(const Change& change) {
  Json json{{"change", KindName(change.kind)}, {"path", change.path}, {"object", change.object}};
  if (!change.what.empty()) json["what"] = change.what;
  if (!change.name.empty()) json["name"] = change.name;
  if (change.kind == ChangeKind::kMoved) {
    json["old_path"] = change.old_value;
  } else if (change.what != "data" && change.kind != ChangeKind::kUnknown) {
    json["old"] = ValueOrNull(change.had_old, change.old_value);
    json["new"] = ValueOrNull(change.has_new, change.new_value);
  }
  if (change.what == "data" && change.kind == ChangeKind::kChanged) {
    json["elements"] = change.element_count;
    json[change.chunked ? "chunk_count" : "run_count"] = change.range_count;
    Json ranges = Json::array();
    for (const ElementRange& range : change.ranges) {
      Json one{{"offset", range.offset}, {"shape", range.shape}, {"elements", range.element_count}};
      if (!range.note.empty()) one["note"] = range.note;
      ranges.push_back(std::move(one));
    }
    json[change.chunked ? "chunks" : "runs"] = std::move(ranges);
  }
  if (!change.note.empty()) json["note"] = change.note;
  return json;
}

}  // namespace h5mirror::tools
