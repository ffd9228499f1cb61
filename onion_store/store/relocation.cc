#include "onion_store/store/relocation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"

namespace h5mirror::store {
namespace {

using Json = nlohmann::json;

constexpr char kDirectory[] = ".h5mirror/moves";
constexpr std::string_view kUnwritten = ".new";
constexpr int kFormat = 1;
constexpr uint64_t kSmallFileMax = 1 << 20;

std::string JournalName(std::string_view id) { return StrCat(kDirectory, "/", id); }

std::string Serialize(const Relocation& relocation) {
  Json renames = Json::array();
  for (const Renaming& renaming : relocation.renames) {
    renames.push_back({{"from", renaming.from}, {"to", renaming.to}});
  }
  return Json{{"format", kFormat}, {"renames", renames}}.dump() + "\n";
}

absl::StatusOr<Relocation> Parse(const std::string& id, const std::string& text) {
  const auto bad = [&](std::string_view why) {
    return absl::DataLossError(StrCat(JournalName(id), ": ", why));
  };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format") || !json["format"].is_number_integer()) {
    return bad("it is no journal of a move");
  }
  if (json["format"] != kFormat) return bad("it is of a newer format: use a newer program");
  if (!json.contains("renames") || !json["renames"].is_array()) return bad("it names no renames");
  Relocation relocation;
  relocation.id = id;
  for (const Json& entry : json["renames"]) {
    if (!entry.is_object() || !entry.contains("from") || !entry["from"].is_string() ||
        !entry.contains("to") || !entry["to"].is_string()) {
      return bad("a rename has no two names");
    }
    relocation.renames.push_back(
        {entry["from"].get<std::string>(), entry["to"].get<std::string>()});
  }
  return relocation;
}

absl::Status RenameOnce(EnvTree& tree, const Renaming& renaming) {
  const auto from = tree.Stat(renaming.from);
  if (absl::IsNotFound(from.status())) return absl::OkStatus();  // Done before, or never there.
  H5M_RETURN_IF_ERROR(from.status());
  const auto to = tree.Stat(renaming.to);
  // Of two directories, the one that gains a name may be safe before the one that loses it.
  if (to.ok() && to->inode == from->inode) return tree.Remove(renaming.from);
  if (to.ok()) {
    return absl::AlreadyExistsError(
        StrCat("a move of ", renaming.from, " to ", renaming.to,
               " was cut short, and both exist: take one of them away"));
  }
  if (!absl::IsNotFound(to.status())) return to.status();
  return tree.Rename(renaming.from, renaming.to);
}

}  // namespace

std::string ParentOf(std::string_view name) {
  const size_t slash = name.rfind('/');
  return std::string(slash == std::string_view::npos ? std::string_view() : name.substr(0, slash));
}

absl::StatusOr<std::string> ReadSmallFile(EnvTree& tree, const std::string& name) {
  H5M_ASSIGN_OR_RETURN(auto file, tree.Open(name, OpenKind::kRead, 0));
  H5M_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > kSmallFileMax) return absl::DataLossError(StrCat(name, " exceeds 1 MiB"));
  std::string text(size, '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, absl::MakeSpan(text)));
  text.resize(got);
  return text;
}

absl::Status BeginRelocation(EnvTree& tree, const Relocation& relocation) {
  const std::string name = JournalName(relocation.id);
  const std::string fresh = StrCat(name, kUnwritten);
  {
    H5M_ASSIGN_OR_RETURN(auto file, tree.Open(fresh, OpenKind::kCreateFresh, 0600));
    H5M_RETURN_IF_ERROR(WriteAt(*file, 0, Serialize(relocation)));
    H5M_RETURN_IF_ERROR(file->Sync());
  }
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, name));
  return tree.SyncDirectory(kDirectory);
}

absl::Status FinishRelocation(EnvTree& tree, const Relocation& relocation) {
  for (const Renaming& renaming : relocation.renames) {
    H5M_RETURN_IF_ERROR(RenameOnce(tree, renaming));
  }
  // The new names first: a file with two names for a moment is safe, a file without a name is lost.
  std::set<std::string> gained, lost;
  for (const Renaming& renaming : relocation.renames) {
    gained.insert(ParentOf(renaming.to));
    lost.insert(ParentOf(renaming.from));
  }
  for (const std::string& directory : gained) {
    H5M_RETURN_IF_ERROR(tree.SyncDirectory(directory));
  }
  for (const std::string& directory : lost) {
    if (gained.count(directory) != 0) continue;
    // The directory may be gone before the journal is: either of two directories may be safe first.
    absl::Status synced = tree.SyncDirectory(directory);
    if (!synced.ok() && !absl::IsNotFound(synced)) return synced;
  }
  const absl::Status removed = tree.Remove(JournalName(relocation.id));
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  // A power loss must not bring the journal back once other files have its names: after a purge, or
  // after a new file of that name.
  return tree.SyncDirectory(kDirectory);
}

absl::StatusOr<std::vector<Relocation>> UnfinishedRelocations(EnvTree& tree) {
  absl::Status made = tree.MakeDirectory(kDirectory, 0700);
  if (made.ok()) {
    H5M_RETURN_IF_ERROR(tree.SyncDirectory(ParentOf(kDirectory)));
    return std::vector<Relocation>();
  }
  if (!absl::IsAlreadyExists(made)) return made;
  H5M_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, tree.List(kDirectory));
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  std::vector<Relocation> unfinished;
  for (const DirectoryEntry& entry : entries) {
    const std::string name = JournalName(entry.name);
    if (std::string_view(entry.name).ends_with(kUnwritten)) {
      H5M_RETURN_IF_ERROR(tree.Remove(name));
      continue;
    }
    H5M_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(tree, name));
    H5M_ASSIGN_OR_RETURN(Relocation relocation, Parse(entry.name, text));
    unfinished.push_back(std::move(relocation));
  }
  return unfinished;
}

}  // namespace h5mirror::store
