#include "cluster/records.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kServerPrefix = "s/";
constexpr std::string_view kBeatPrefix = "b/";
constexpr std::string_view kCellPrefix = "c/";
constexpr std::string_view kDrainPrefix = "d/";
constexpr std::string_view kMovePrefix = "m/";

// By number of the enum.
constexpr std::array<std::string_view, 5> kServerStates = {"up", "draining", "gone", "dead",
                                                           "fenced"};
constexpr std::array<std::string_view, 4> kCellStates = {"free", "opening", "served", "draining"};
constexpr std::array<std::string_view, 3> kDrainWishes = {"none", "stay", "exit"};

template <typename State, size_t kCount>
std::string WordOf(State state, const std::array<std::string_view, kCount>& words) {
  return std::string(words[static_cast<size_t>(state)]);
}

// Texts with bytes that are not UTF-8 are dumped with replacements: IDs and addresses are ASCII,
// and a cell's directory lies in the name, not in the text.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Adds the fields of a later release. Fields that this release knows win.
std::string DumpWith(Json json, const std::string& later) {
  if (!later.empty()) {
    const Json more = Json::parse(later, nullptr, /*allow_exceptions=*/false);
    if (more.is_object()) {
      for (const auto& [name, value] : more.items()) json.emplace(name, value);
    }
  }
  return Dump(json);
}

// One text, field by field. The first field that is missing or of another kind spoils it.
class Fields {
 public:
  explicit Fields(std::string_view text)
      : text_(text), json_(Json::parse(text, nullptr, /*allow_exceptions=*/false)) {
    is_good_ = json_.is_object();
  }

  void Take(const char* name, uint64_t* value) {
    const Json* const field = Find(name);
    if (field != nullptr && field->is_number_unsigned()) {
      *value = field->get<uint64_t>();
    } else {
      is_good_ = false;
    }
  }
  void Take(const char* name, bool* value) {
    const Json* const field = Find(name);
    if (field != nullptr && field->is_boolean()) {
      *value = field->get<bool>();
    } else {
      is_good_ = false;
    }
  }
  void Take(const char* name, std::string* value) {
    const Json* const field = Find(name);
    if (field != nullptr && field->is_string()) {
      *value = field->get<std::string>();
    } else {
      is_good_ = false;
    }
  }
  void Take(const char* name, std::vector<std::string>* values) {
    const Json* const field = Find(name);
    if (field == nullptr || !field->is_array()) {
      is_good_ = false;
      return;
    }
    for (const Json& each : *field) {
      if (!each.is_string()) {
        is_good_ = false;
        return;
      }
      values->push_back(each.get<std::string>());
    }
  }
  template <typename State, size_t kCount>
  void Take(const char* name, const std::array<std::string_view, kCount>& words, State* state) {
    std::string word;
    Take(name, &word);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) {
      is_good_ = false;
    } else {
      *state = static_cast<State>(found - words.begin());
    }
  }

  bool Has(const char* name) const { return json_.is_object() && json_.contains(name); }

  // The fields that nobody has taken, as ServerRecord::later.
  std::string Rest() const {
    Json rest = Json::object();
    if (!json_.is_object()) return "";
    for (const auto& [name, value] : json_.items()) {
      if (!taken_.contains(name)) rest[name] = value;
    }
    return rest.empty() ? "" : Dump(rest);
  }

  absl::Status status() const {
    if (is_good_) return absl::OkStatus();
    return absl::DataLossError(StrCat("the registry has a text of another form: ", text_));
  }

 private:
  const Json* Find(const char* name) {
    if (!json_.is_object()) return nullptr;
    taken_.insert(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  const std::string_view text_;
  const Json json_;
  std::set<std::string, std::less<>> taken_;
  bool is_good_ = false;
};

// Whether `name` is `prefix` and an ID or directory, which `rest` becomes.
bool TakePrefix(std::string_view name, std::string_view prefix, std::string* rest) {
  if (!name.starts_with(prefix)) return false;
  *rest = name.substr(prefix.size());
  return true;
}

bool IsIdByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool IsDirectoryName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.starts_with(".h5mirror") &&
         name.find('\0') == name.npos;
}

}  // namespace

bool IsAlive(ServerState state) {
  return state == ServerState::kUp || state == ServerState::kDraining;
}

bool IsOver(ServerState state) {
  return state == ServerState::kGone || state == ServerState::kFenced;
}

std::string Encode(const ServerRecord& record) {
  Json json = {{"epoch", record.epoch},
               {"state", WordOf(record.state, kServerStates)},
               {"listen", record.listen},
               {"session", record.session},
               {"addresses", record.addresses}};
  if (!record.mounts.empty()) json["mounts"] = record.mounts;
  if (record.seq != 0) json["seq"] = record.seq;
  if (!record.version.empty()) json["version"] = record.version;
  if (!record.http.empty()) json["http"] = record.http;
  return DumpWith(std::move(json), record.later);
}

std::string Encode(const BeatRecord& record) {
  return Dump({{"epoch", record.epoch}, {"number", record.number}});
}

std::string Encode(const CellRecord& record) {
  return DumpWith({{"state", WordOf(record.state, kCellStates)},
                   {"owner", record.owner},
                   {"owner_epoch", record.owner_epoch},
                   {"epoch", record.epoch},
                   {"seq", record.seq},
                   {"clean", record.is_clean}},
                  record.later);
}

std::string Encode(const DrainRecord& record) {
  return Dump({{"epoch", record.epoch}, {"wish", WordOf(record.wish, kDrainWishes)}});
}

std::string Encode(const MoveRecord& record) {
  Json json = {{"to", record.to}, {"epoch", record.epoch}};
  if (record.to_epoch != 0) json["to_epoch"] = record.to_epoch;
  return Dump(json);
}

absl::StatusOr<ServerRecord> DecodeServer(std::string_view text) {
  Fields fields(text);
  ServerRecord record;
  fields.Take("epoch", &record.epoch);
  fields.Take("state", kServerStates, &record.state);
  fields.Take("listen", &record.listen);
  fields.Take("session", &record.session);
  fields.Take("addresses", &record.addresses);
  if (fields.Has("mounts")) fields.Take("mounts", &record.mounts);
  if (fields.Has("seq")) fields.Take("seq", &record.seq);
  if (fields.Has("version")) fields.Take("version", &record.version);
  if (fields.Has("http")) fields.Take("http", &record.http);
  record.later = fields.Rest();
  H5M_RETURN_IF_ERROR(fields.status());
  return record;
}

absl::StatusOr<BeatRecord> DecodeBeat(std::string_view text) {
  Fields fields(text);
  BeatRecord record;
  fields.Take("epoch", &record.epoch);
  fields.Take("number", &record.number);
  H5M_RETURN_IF_ERROR(fields.status());
  return record;
}

absl::StatusOr<CellRecord> DecodeCell(std::string_view text) {
  Fields fields(text);
  CellRecord record;
  fields.Take("state", kCellStates, &record.state);
  fields.Take("owner", &record.owner);
  fields.Take("owner_epoch", &record.owner_epoch);
  fields.Take("epoch", &record.epoch);
  fields.Take("seq", &record.seq);
  fields.Take("clean", &record.is_clean);
  record.later = fields.Rest();
  H5M_RETURN_IF_ERROR(fields.status());
  return record;
}

absl::StatusOr<DrainRecord> DecodeDrain(std::string_view text) {
  Fields fields(text);
  DrainRecord record;
  fields.Take("epoch", &record.epoch);
  fields.Take("wish", kDrainWishes, &record.wish);
  H5M_RETURN_IF_ERROR(fields.status());
  return record;
}

absl::StatusOr<MoveRecord> DecodeMove(std::string_view text) {
  Fields fields(text);
  MoveRecord record;
  fields.Take("to", &record.to);
  fields.Take("epoch", &record.epoch);
  if (fields.Has("to_epoch")) fields.Take("to_epoch", &record.to_epoch);
  H5M_RETURN_IF_ERROR(fields.status());
  return record;
}

std::string ServerName(std::string_view id) { return StrCat(kServerPrefix, id); }
std::string BeatName(std::string_view id) { return StrCat(kBeatPrefix, id); }
std::string CellName(std::string_view cell) { return StrCat(kCellPrefix, cell); }
std::string DrainName(std::string_view id) { return StrCat(kDrainPrefix, id); }
std::string MoveName(std::string_view cell) { return StrCat(kMovePrefix, cell); }

const ServerRecord* ClusterView::FindServer(const std::string& id) const {
  const auto found = servers.find(id);
  return found == servers.end() ? nullptr : &found->second;
}

const CellRecord* ClusterView::FindCell(const std::string& cell) const {
  const auto found = cells.find(cell);
  return found == cells.end() ? nullptr : &found->second;
}

DrainWish ClusterView::WishFor(const std::string& id) const {
  const ServerRecord* const server = FindServer(id);
  const auto found = drains.find(id);
  const bool is_for_it =
      server != nullptr && found != drains.end() && found->second.epoch == server->epoch;
  return is_for_it ? found->second.wish : DrainWish::kNone;
}

std::string ClusterView::MovesTo(const std::string& cell) const {
  const CellRecord* const record = FindCell(cell);
  const auto found = moves.find(cell);
  if (record == nullptr || found == moves.end() || found->second.epoch != record->epoch) return "";
  const MoveRecord& move = found->second;
  const ServerRecord* const to = FindServer(move.to);
  const bool is_its_life = to != nullptr && (move.to_epoch == 0 || move.to_epoch == to->epoch);
  return is_its_life && to->state == ServerState::kUp ? move.to : "";
}

absl::StatusOr<ClusterView> DecodeView(RegistryView texts) {
  ClusterView view;
  for (const auto& [name, text] : texts) {
    std::string key;
    if (TakePrefix(name, kServerPrefix, &key)) {
      H5M_ASSIGN_OR_RETURN(view.servers[key], DecodeServer(text));
    } else if (TakePrefix(name, kBeatPrefix, &key)) {
      H5M_ASSIGN_OR_RETURN(view.beats[key], DecodeBeat(text));
    } else if (TakePrefix(name, kCellPrefix, &key)) {
      H5M_ASSIGN_OR_RETURN(view.cells[key], DecodeCell(text));
    } else if (TakePrefix(name, kDrainPrefix, &key)) {
      H5M_ASSIGN_OR_RETURN(view.drains[key], DecodeDrain(text));
    } else if (TakePrefix(name, kMovePrefix, &key)) {
      H5M_ASSIGN_OR_RETURN(view.moves[key], DecodeMove(text));
    }
  }
  view.texts = std::move(texts);
  return view;
}

void RaiseEpoch(CellRecord& record) { ++record.epoch; }

absl::Status CheckCellDirectory(std::string_view directory) {
  const std::string_view whole = directory;
  while (!directory.empty()) {
    const size_t slash = directory.find('/');
    const bool is_last = slash == directory.npos;
    if (!IsDirectoryName(directory.substr(0, slash)) ||
        (!is_last && slash + 1 == directory.size())) {
      return absl::InvalidArgumentError(
          StrCat("\"", whole, "\" is no cell: a relative path without \".\" and \"..\" is"));
    }
    directory = is_last ? "" : directory.substr(slash + 1);
  }
  return absl::OkStatus();
}

absl::Status CheckServerId(std::string_view id) {
  if (!id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), IsIdByte)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("\"", id, "\" is no ID of a server: 1 to 64 letters, digits, '-', '_' or '.'"));
}

}  // namespace h5mirror::cluster
