#include "onion_store/file_list.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

constexpr std::string_view kSuffix = ".h5m";
constexpr int kDepthMax = 128;

struct Walk {
  EnvTree& tree;
  std::string_view after_name;
  size_t limit;
  std::vector<FileSummary> found;

  bool full() const { return found.size() >= limit; }

  absl::Status Visit(const std::string& directory, int depth) {
    auto entries = tree.List(directory);
    if (absl::IsNotFound(entries.status()) && depth > 0) return absl::OkStatus();  // Gone.
    H5M_RETURN_IF_ERROR(entries.status());
    absl::flat_hash_set<std::string> histories;
    std::vector<std::string> names;  // directories with a '/', so that the order is that of paths
    for (DirectoryEntry& entry : *entries) {
      bool is_directory = entry.kind == EntryKind::kDirectory;
      if (is_directory && std::string_view(entry.name).ends_with(kSuffix)) {
        histories.insert(entry.name.substr(0, entry.name.size() - kSuffix.size()));
      } else if (is_directory && !(depth == 0 && directory.empty() && entry.name == ".h5mirror")) {
        names.push_back(entry.name + "/");
      } else if (entry.kind == EntryKind::kFile) {
        names.push_back(std::move(entry.name));
      }
    }
    std::sort(names.begin(), names.end());
    const std::string prefix = directory.empty() ? "" : directory + "/";
    for (const std::string& name : names) {
      if (full()) break;
      std::string path = prefix + name;
      if (name.back() == '/') {
        // All below is at or before `after_name` if that sorts behind every "name/...".
        bool before = path < after_name && after_name.substr(0, path.size()) != path;
        path.pop_back();
        if (!before && depth < kDepthMax) H5M_RETURN_IF_ERROR(Visit(path, depth + 1));
      } else if (path > after_name && histories.contains(name)) {
        Take(path);
      }
    }
    return absl::OkStatus();
  }

  void Take(const std::string& path) {
    if (!tree.Stat(StrCat(path, kSuffix, "/index")).ok()) return;  // Only a client's record.
    auto stat = tree.Stat(path);
    if (!stat.ok()) return;
    found.push_back(
        {path, static_cast<uint64_t>(stat->size_bytes), absl::FromUnixNanos(stat->mtime_ns)});
  }
};

}  // namespace

absl::StatusOr<std::vector<FileSummary>> ListFiles(EnvTree& tree, std::string_view directory,
                                                   std::string_view after_name, size_t limit) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  if (!directory.empty()) H5M_RETURN_IF_ERROR(CheckName(directory));
  Walk walk{tree, after_name, limit, {}};
  H5M_RETURN_IF_ERROR(walk.Visit(std::string(directory), 0));
  return std::move(walk.found);
}

}  // namespace h5mirror::store
