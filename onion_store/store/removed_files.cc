#include "onion_store/store/removed_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"
#include "onion_store/shared/file_owner.h"
#include "onion_store/store/relocation.h"

namespace h5mirror::store {
namespace {

using Json = nlohmann::json;

constexpr char kDirectory[] = ".h5mirror/removed";
constexpr std::string_view kGone = "gone-";
constexpr int kFormat = 1;
constexpr int kDepthMax = 8;  // of the directories that the store itself puts there

std::string Place(std::string_view id) { return StrCat(kDirectory, "/", id); }
std::string InfoName(std::string_view id) { return StrCat(Place(id), "/info"); }

// Makes the directory of removed files, unless it exists.
absl::Status MakeDirectory(EnvTree& tree) {
  absl::Status made = tree.MakeDirectory(kDirectory, 0700);
  if (made.ok()) return tree.SyncDirectory(ParentOf(kDirectory));
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

std::string Serialize(const RemovedFile& removed) {
  return Json{{"format", kFormat},
              {"name", removed.name},
              {"removed_ns", absl::ToUnixNanos(removed.removed)},
              {"expires_ns", absl::ToUnixNanos(removed.expires)},
              {"disk_bytes", removed.disk_bytes},
              {"head_bytes", removed.head_bytes},
              {"history_bytes", removed.history_bytes},
              {"tags", removed.tags},
              {"claimed_user", removed.who.claimed_user},
              {"verified_user", removed.who.verified_user},
              {"host", removed.who.host},
              {"program", removed.who.program},
              {"pid", removed.who.pid}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t NumberOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

uint64_t SizeOf(const Json& json, const char* key) {
  return static_cast<uint64_t>(std::max<int64_t>(NumberOf(json, key), 0));
}

// Erases files and directories. The tree follows no symlinks, so they lead nowhere.
absl::Status EraseBelow(EnvTree& tree, const std::string& name, int depth) {
  auto entries = tree.List(name);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    const std::string below = StrCat(name, "/", entry.name);
    if (entry.kind == EntryKind::kDirectory) {
      if (depth == kDepthMax) return absl::FailedPreconditionError(StrCat(below, " is too deep"));
      H5M_RETURN_IF_ERROR(EraseBelow(tree, below, depth + 1));
    } else {
      H5M_RETURN_IF_ERROR(tree.Remove(below));
    }
  }
  return tree.RemoveDirectory(name);
}

}  // namespace

std::string RemovedHead(std::string_view id) { return StrCat(Place(id), "/head"); }
std::string RemovedHistory(std::string_view id) { return StrCat(Place(id), "/history"); }

std::string NewRemovalId(absl::Time now) {
  const Bytes16 random = RandomBytes16();
  return absl::StrFormat("%s-%02x%02x",
                         absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()), random[0],
                         random[1]);
}

absl::Status CheckRemovalId(std::string_view id) {
  const auto is_allowed = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; };
  if (!id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), is_allowed) &&
      !id.starts_with(kGone)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("removal id '", id.substr(0, 64), "': it looks like 20261103T140000Z-07fc"));
}

absl::Status PutRemovedInfo(EnvTree& tree, const RemovedFile& removed) {
  H5M_RETURN_IF_ERROR(MakeDirectory(tree));
  H5M_RETURN_IF_ERROR(tree.MakeDirectory(Place(removed.id), 0700));
  {
    H5M_ASSIGN_OR_RETURN(auto file, tree.Open(InfoName(removed.id), OpenKind::kCreateFresh, 0600));
    H5M_RETURN_IF_ERROR(WriteAt(*file, 0, Serialize(removed)));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  H5M_RETURN_IF_ERROR(tree.SyncDirectory(Place(removed.id)));
  return tree.SyncDirectory(kDirectory);
}

absl::StatusOr<RemovedFile> GetRemoved(EnvTree& tree, std::string_view id) {
  H5M_RETURN_IF_ERROR(CheckRemovalId(id));
  const auto history = tree.List(RemovedHistory(id));
  if (absl::IsNotFound(history.status())) {
    return absl::NotFoundError(StrCat("no removed file has the id ", id));
  }
  H5M_RETURN_IF_ERROR(history.status());
  H5M_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(tree, InfoName(id)));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || NumberOf(json, "format") != kFormat ||
      !CheckName(TextOf(json, "name")).ok()) {
    return absl::DataLossError(StrCat(InfoName(id), " is damaged, or of a newer format"));
  }
  RemovedFile removed;
  removed.id = std::string(id);
  removed.name = TextOf(json, "name");
  removed.removed = absl::FromUnixNanos(NumberOf(json, "removed_ns"));
  removed.expires = absl::FromUnixNanos(NumberOf(json, "expires_ns"));
  removed.disk_bytes = SizeOf(json, "disk_bytes");
  removed.head_bytes = SizeOf(json, "head_bytes");
  removed.history_bytes = SizeOf(json, "history_bytes");
  removed.tags = SizeOf(json, "tags");
  removed.who.claimed_user = TextOf(json, "claimed_user");
  removed.who.verified_user = TextOf(json, "verified_user");
  removed.who.host = TextOf(json, "host");
  removed.who.program = TextOf(json, "program");
  removed.who.pid = static_cast<uint32_t>(NumberOf(json, "pid"));
  removed.owner = OwnerIn(*history);
  return removed;
}

absl::StatusOr<std::vector<RemovedFile>> ListRemovedFiles(EnvTree& tree) {
  auto entries = tree.List(kDirectory);
  if (absl::IsNotFound(entries.status())) return std::vector<RemovedFile>();
  H5M_RETURN_IF_ERROR(entries.status());
  std::vector<RemovedFile> files;
  for (const DirectoryEntry& entry : *entries) {
    auto removed = GetRemoved(tree, entry.name);
    if (removed.ok()) files.push_back(*std::move(removed));
  }
  std::sort(files.begin(), files.end(), [](const RemovedFile& a, const RemovedFile& b) {
    return std::tie(a.removed, a.id) > std::tie(b.removed, b.id);
  });
  return files;
}

absl::Status DropRemovedInfo(EnvTree& tree, std::string_view id) {
  absl::Status removed = tree.Remove(InfoName(id));
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  removed = tree.RemoveDirectory(Place(id));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::StatusOr<std::string> SetGone(EnvTree& tree, std::string_view id) {
  const std::string gone = Place(StrCat(kGone, id));
  H5M_RETURN_IF_ERROR(tree.Rename(Place(id), gone));
  // A power loss must not bring the name back with only a part of its content.
  H5M_RETURN_IF_ERROR(tree.SyncDirectory(kDirectory));
  return gone;
}

absl::Status EraseGone(EnvTree& tree, const std::string& place) {
  return EraseBelow(tree, place, 0);
}

std::string HistoryIn(std::string_view place) { return StrCat(place, "/history"); }

absl::StatusOr<std::vector<std::string>> ListGone(EnvTree& tree) {
  std::vector<std::string> places;
  const auto entries = tree.List(kDirectory);
  if (absl::IsNotFound(entries.status())) return places;
  H5M_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind == EntryKind::kDirectory && std::string_view(entry.name).starts_with(kGone)) {
      places.push_back(Place(entry.name));
    }
  }
  return places;
}

absl::Status SweepRemoved(EnvTree& tree) {
  auto entries = tree.List(kDirectory);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind != EntryKind::kDirectory || std::string_view(entry.name).starts_with(kGone)) {
      continue;
    }
    H5M_ASSIGN_OR_RETURN(const bool has_history, tree.Exists(RemovedHistory(entry.name)));
    H5M_ASSIGN_OR_RETURN(const bool has_head, tree.Exists(RemovedHead(entry.name)));
    if (!has_history && !has_head) H5M_RETURN_IF_ERROR(DropRemovedInfo(tree, entry.name));
  }
  return absl::OkStatus();
}

uint64_t BytesOf(EnvTree& tree, const std::string& name) {
  const auto stat = tree.Stat(name);
  return stat.ok() && stat->size_bytes > 0 ? static_cast<uint64_t>(stat->size_bytes) : 0;
}

uint64_t BytesBelow(EnvTree& tree, const std::string& directory) {
  uint64_t bytes = 0;
  const auto entries = tree.List(directory);
  if (!entries.ok()) return bytes;
  for (const DirectoryEntry& entry : *entries) {
    const std::string below = StrCat(directory, "/", entry.name);
    if (entry.kind == EntryKind::kDirectory) bytes += BytesBelow(tree, below);
    if (entry.kind == EntryKind::kFile) bytes += BytesOf(tree, below);
  }
  return bytes;
}

}  // namespace h5mirror::store
