#include "onion_store/shared/file_owner.h"

#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kPrefix = "owner-";
// A name in a directory has 255 bytes.
constexpr size_t kOwnerBytesMax = 200;

std::string EntryName(const std::string& directory, std::string_view owner) {
  return StrCat(directory, "/", kPrefix, owner);
}

std::vector<std::string> OwnersIn(absl::Span<const DirectoryEntry> entries) {
  std::vector<std::string> owners;
  for (const DirectoryEntry& entry : entries) {
    if (IsOwnerEntry(entry.name)) owners.push_back(entry.name.substr(kPrefix.size()));
  }
  return owners;
}

}  // namespace

absl::Status CheckOwner(std::string_view owner) {
  const size_t colon = owner.find(':');
  const bool is_plain = std::all_of(owner.begin(), owner.end(), [](unsigned char byte) {
    return byte >= 0x20 && byte != 0x7f && byte != '/';
  });
  if (is_plain && owner.size() <= kOwnerBytesMax && colon != std::string_view::npos && colon > 0 &&
      colon + 1 < owner.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("an owner looks like unix:anna, has at most ",
                                           kOwnerBytesMax,
                                           " bytes, no '/' and no control character"));
}

bool IsOwnerEntry(std::string_view entry) { return entry.starts_with(kPrefix); }

std::string OwnerIn(absl::Span<const DirectoryEntry> entries) {
  std::vector<std::string> owners = OwnersIn(entries);
  return owners.size() == 1 && CheckOwner(owners[0]).ok() ? std::move(owners[0]) : std::string();
}

absl::StatusOr<FileOwner> ReadOwner(EnvTree& tree, std::string_view name) {
  const auto entries = tree.List(StrCat(name, ".h5m"));
  if (!entries.ok() && !absl::IsNotFound(entries.status())) return entries.status();
  if (entries.ok()) {
    const bool has_index = std::any_of(entries->begin(), entries->end(),
                                       [](const auto& entry) { return entry.name == "index"; });
    if (has_index) return FileOwner{true, OwnerIn(*entries)};
  }
  H5M_ASSIGN_OR_RETURN(const bool has_head, tree.Exists(name));
  return FileOwner{has_head, ""};
}

absl::Status NameOwner(EnvTree& tree, const std::string& directory, std::string_view owner) {
  if (owner.empty()) return absl::OkStatus();
  return tree.Open(EntryName(directory, owner), OpenKind::kCreateFresh, 0600).status();
}

absl::Status ChangeOwner(EnvTree& tree, const std::string& directory, std::string_view owner) {
  H5M_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, tree.List(directory));
  std::vector<std::string> former = OwnersIn(entries);
  const auto same = std::find(former.begin(), former.end(), owner);
  if (same != former.end()) {
    former.erase(same);
  } else if (!owner.empty() && former.empty()) {
    H5M_RETURN_IF_ERROR(NameOwner(tree, directory, owner));
  } else if (!owner.empty()) {
    // One step: no crash leaves the file with both owners, or with none.
    H5M_RETURN_IF_ERROR(
        tree.Rename(EntryName(directory, former.back()), EntryName(directory, owner)));
    former.pop_back();
  }
  for (const std::string& other : former) {
    H5M_RETURN_IF_ERROR(tree.Remove(EntryName(directory, other)));
  }
  return tree.SyncDirectory(directory);
}

}  // namespace h5mirror::store
