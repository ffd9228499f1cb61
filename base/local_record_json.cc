#include "base/local_record_json.h"

#include <array>
#include <utility>

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"

namespace h5mirror {
namespace {

using Json = nlohmann::json;

// Raised when a reader of this release could misunderstand the record.
constexpr int64_t kFormat = 1;

constexpr std::array<std::pair<RecordState, std::string_view>, 4> kStateNames = {{
    {RecordState::kClean, "clean"},
    {RecordState::kOpen, "open"},
    {RecordState::kBehind, "behind"},
    {RecordState::kDiverged, "diverged"},
}};

// Takes typed values out of one JSON object; remembers the first that is missing or wrong.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {
    if (!object.is_object()) status_ = absl::InvalidArgumentError("not a JSON object");
  }

  std::string Text(const char* key) {
    const Json* value = Find(key, &Json::is_string, "a string");
    return value == nullptr ? std::string() : value->get<std::string>();
  }
  int64_t Int(const char* key) {
    const Json* value = Find(key, &Json::is_number_integer, "a whole number");
    return value == nullptr ? 0 : value->get<int64_t>();
  }
  uint64_t Unsigned(const char* key) {
    const Json* value = Find(key, &Json::is_number_unsigned, "a number >= 0");
    return value == nullptr ? 0 : value->get<uint64_t>();
  }
  const Json& Object(const char* key) {
    static const Json* const kEmpty = new Json(Json::object());
    const Json* value = Find(key, &Json::is_object, "an object");
    return value == nullptr ? *kEmpty : *value;
  }
  Bytes16 Identity(const char* key) { return OrFail(key, ParseHex16(Text(key)), Bytes16{}); }
  // The value, or `fallback` after remembering the error.
  template <typename T>
  T OrFail(const char* key, absl::StatusOr<T> value, T fallback) {
    if (value.ok()) return *std::move(value);
    Fail(key, ToStd(value.status().message()));
    return fallback;
  }
  void Fail(const char* key, std::string_view why) {
    status_.Update(absl::InvalidArgumentError(StrCat("\"", key, "\": ", why)));
  }
  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* key, bool (Json::*is_type)() const noexcept, std::string_view type) {
    if (!status_.ok()) return nullptr;
    const auto it = object_.find(key);
    if (it != object_.end() && ((*it).*is_type)()) return &*it;
    Fail(key, it == object_.end() ? "missing" : StrCat("not ", type));
    return nullptr;
  }

  const Json& object_;
  absl::Status status_;
};

absl::StatusOr<RecordState> StateOf(std::string_view name) {
  for (const auto& [state, state_name] : kStateNames) {
    if (state_name == name) return state;
  }
  return absl::InvalidArgumentError(StrCat("unknown state '", name, "'"));
}

absl::StatusOr<absl::Time> TimeOf(const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  return absl::InvalidArgumentError(error);
}

absl::StatusOr<FileStat> StatOf(const Json& object) {
  Reader reader(object);
  FileStat stat;
  stat.inode = reader.Unsigned("inode");
  stat.size_bytes = reader.Int("size_bytes");
  stat.mtime_ns = reader.Int("mtime_ns");
  stat.ctime_ns = reader.Int("ctime_ns");
  H5M_RETURN_IF_ERROR(reader.status());
  return stat;
}

Json JsonOf(const FileStat& stat) {
  return Json{{"inode", stat.inode},
              {"size_bytes", stat.size_bytes},
              {"mtime_ns", stat.mtime_ns},
              {"ctime_ns", stat.ctime_ns}};
}

absl::StatusOr<RecordGroup> GroupOf(const Json& object) {
  Reader reader(object);
  RecordGroup group;
  group.id = reader.Identity("id");
  group.number = reader.Unsigned("number");
  const auto members = object.find("members");
  const bool is_list = reader.status().ok() && members != object.end() && members->is_array();
  if (!is_list) reader.Fail("members", "not a list");
  for (size_t index = 0; is_list && index < members->size(); ++index) {
    if (!(*members)[index].is_string()) reader.Fail("members", "not a list of strings");
    H5M_RETURN_IF_ERROR(reader.status());
    group.members.push_back((*members)[index].get<std::string>());
  }
  H5M_RETURN_IF_ERROR(reader.status());
  return group;
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// JSON holds UTF-8 only; other bytes would come back as something else.
absl::Status CheckUtf8(const char* key, const std::string& text) {
  const Json back = Json::parse(Dump(Json(text), -1), nullptr, false);
  if (back.is_string() && back.get_ref<const std::string&>() == text) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("record: \"", key, "\" is not UTF-8"));
}

}  // namespace

std::string_view RecordStateName(RecordState state) {
  for (const auto& [known, name] : kStateNames) {
    if (known == state) return name;
  }
  return "unknown";
}

absl::StatusOr<std::string> RecordToJson(const LocalRecord& record) {
  H5M_RETURN_IF_ERROR(CheckUtf8("server", record.server));
  H5M_RETURN_IF_ERROR(CheckUtf8("name", record.name));
  Json json = {
      {"format", kFormat},
      {"state", RecordStateName(record.state)},
      {"file_id", HexOf(record.file_id)},
      {"server", record.server},
      {"name", record.name},
      {"cut", record.cut},
      {"version", record.version},
      {"stat", JsonOf(record.stat)},
      {"detail", record.detail},
      {"since", absl::FormatTime(absl::RFC3339_full, record.since, absl::UTCTimeZone())},
  };
  if (!record.renamed_from.empty()) {
    H5M_RETURN_IF_ERROR(CheckUtf8("renamed_from", record.renamed_from));
    json["renamed_from"] = record.renamed_from;
  }
  if (record.group) {
    for (const std::string& member : record.group->members) {
      H5M_RETURN_IF_ERROR(CheckUtf8("members", member));
    }
    json["group"] = Json{{"id", HexOf(record.group->id)},
                         {"number", record.group->number},
                         {"members", record.group->members}};
  }
  if (record.pending_seq != 0) {
    json["pending"] =
        Json{{"session_id", HexOf(record.pending_session_id)}, {"seq", record.pending_seq}};
  }
  if (record.dirty_map_id != Bytes16{}) json["dirty_map"] = HexOf(record.dirty_map_id);
  return Dump(json, 2) + "\n";
}

absl::StatusOr<LocalRecord> RecordFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not JSON");
  Reader reader(json);
  if (const int64_t format = reader.Int("format"); reader.status().ok() && format != kFormat) {
    reader.Fail("format", StrCat(format, " is of a later release, this one reads ", kFormat));
  }
  LocalRecord record;
  record.state = reader.OrFail("state", StateOf(reader.Text("state")), RecordState::kOpen);
  record.file_id = reader.Identity("file_id");
  record.server = reader.Text("server");
  record.name = reader.Text("name");
  record.cut = reader.Int("cut");
  record.version = reader.Int("version");
  record.stat = reader.OrFail("stat", StatOf(reader.Object("stat")), FileStat{});
  record.detail = reader.Text("detail");
  record.since = reader.OrFail("since", TimeOf(reader.Text("since")), absl::InfinitePast());
  if (reader.status().ok() && json.contains("renamed_from")) {
    record.renamed_from = reader.Text("renamed_from");
  }
  if (reader.status().ok() && json.contains("group")) {
    record.group = reader.OrFail("group", GroupOf(reader.Object("group")), RecordGroup{});
  }
  if (reader.status().ok() && json.contains("pending")) {
    Reader pending(reader.Object("pending"));
    record.pending_session_id = pending.Identity("session_id");
    record.pending_seq = pending.Unsigned("seq");
    if (!pending.status().ok()) reader.Fail("pending", ToStd(pending.status().message()));
  }
  if (reader.status().ok() && json.contains("dirty_map")) {
    record.dirty_map_id = reader.Identity("dirty_map");
  }
  H5M_RETURN_IF_ERROR(reader.status());
  return record;
}

}  // namespace h5mirror
