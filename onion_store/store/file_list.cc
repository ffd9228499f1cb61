#include "onion_store/store/file_list.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/history_names.h"
#include "onion_store/shared/new_name.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kSuffix = ".h5m";

enum class Level { kTop, kBelow };

// The entries of a directory that may hold files, or belong to files.
struct Listing {
  absl::flat_hash_set<std::string> histories;  // names that have a history
  std::vector<std::string> names;  // directories with a '/', so that the order is that of paths
};

Listing Sort(const std::string& directory, std::vector<DirectoryEntry> entries) {
  Listing listing;
  for (DirectoryEntry& entry : entries) {
    const bool is_directory = entry.kind == EntryKind::kDirectory;
    if (is_directory && std::string_view(entry.name).ends_with(kSuffix)) {
      listing.histories.insert(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    } else if (is_directory && !(directory.empty() && entry.name == ".h5mirror")) {
      listing.names.push_back(entry.name + "/");
    } else if (entry.kind == EntryKind::kFile) {
      listing.names.push_back(std::move(entry.name));
    }
  }
  std::sort(listing.names.begin(), listing.names.end());
  return listing;
}

struct Walk {
  EnvTree& tree;
  std::string_view after_name;
  size_t limit;
  FileList list;

  bool full() const { return list.files.size() >= limit; }

  absl::Status Visit(const std::string& directory, Level level) {
    auto entries = tree.List(directory);
    if (absl::IsNotFound(entries.status()) && level == Level::kBelow) {
      return absl::OkStatus();  // Gone.
    }
    if (absl::IsPermissionDenied(entries.status()) && level == Level::kBelow) {
      list.unreadable.push_back(directory);
      return absl::OkStatus();
    }
    H5M_RETURN_IF_ERROR(entries.status());
    const Listing listing = Sort(directory, *std::move(entries));
    const std::string prefix = directory.empty() ? "" : directory + "/";
    for (const std::string& name : listing.names) {
      if (full()) break;
      std::string path = prefix + name;
      if (name.back() == '/') {
        H5M_RETURN_IF_ERROR(VisitBelow(std::move(path)));
      } else if (path > after_name && listing.histories.contains(name)) {
        Take(path);
      }
    }
    return absl::OkStatus();
  }

  // `path` ends with a '/'.
  absl::Status VisitBelow(std::string path) {
    // All names below are at or before `after_name` if that sorts after every "name/...".
    const bool is_before = path < after_name && !after_name.starts_with(path);
    path.pop_back();
    // As deep as any possible name of a file, not only names that may be given.
    if (is_before || path.size() >= kNameBytesMax) return absl::OkStatus();
    return Visit(path, Level::kBelow);
  }

  void Take(const std::string& path) {
    if (!HasHistory(path)) return;  // Only a client's record.
    auto stat = tree.Stat(path);
    if (!stat.ok()) return;
    list.files.push_back(
        {path, static_cast<uint64_t>(stat->size_bytes), absl::FromUnixNanos(stat->mtime_ns)});
  }

  // Also if its index was lost: the file is listed, and its open tells the damage.
  bool HasHistory(const std::string& path) {
    const std::string directory = path + std::string(kSuffix);
    if (tree.Stat(directory + "/index").ok()) return true;
    const auto entries = tree.List(directory);
    return entries.ok() && std::any_of(entries->begin(), entries->end(),
                                       [](const auto& entry) { return ProvesAnIndex(entry.name); });
  }
};

}  // namespace

absl::StatusOr<FileList> ListFiles(EnvTree& tree, std::string_view directory,
                                   std::string_view after_name, size_t limit) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  if (!directory.empty()) H5M_RETURN_IF_ERROR(CheckName(directory));
  Walk walk{tree, after_name, limit, {}};
  H5M_RETURN_IF_ERROR(walk.Visit(std::string(directory), Level::kTop));
  return std::move(walk.list);
}

}  // namespace h5mirror::store
