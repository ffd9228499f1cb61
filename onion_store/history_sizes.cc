#include "onion_store/history_sizes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/history_names.h"

namespace h5mirror::store {
namespace {

// A segment with a smaller dead part is left alone.
constexpr uint64_t kDeadPart = 8;

// A file that was removed since the directory was read counts 0.
uint64_t SizeOf(EnvTree& tree, const std::string& name) {
  const auto stat = tree.Stat(name);
  return stat.ok() ? static_cast<uint64_t>(std::max<int64_t>(stat->size_bytes, 0)) : 0;
}

}  // namespace

uint64_t DataBytes(EnvTree& tree, const std::string& name) {
  auto file = tree.Open(name, OpenKind::kRead, 0);
  uint64_t bytes = 0;
  for (uint64_t at = 0; file.ok();) {
    auto data = (*file)->NextData(at);
    if (!data.ok() || data->length == 0) break;
    bytes += data->length;
    at = data->end();
  }
  return bytes;
}

std::optional<int64_t> GenerationOfEntry(std::string_view entry) {
  auto number = NumberAfter(entry, "head-");
  if (!number) number = NumberAfter(entry, "sums-");
  return number;
}

absl::StatusOr<uint64_t> FreeBytesOf(EnvTree& tree) {
  const absl::StatusOr<uint64_t> free_bytes = tree.FreeBytes();
  return absl::IsUnavailable(free_bytes.status()) ? kFreeBytesUnknown : free_bytes;
}

bool IsDeadEnough(uint64_t size_bytes, uint64_t live_bytes) {
  if (live_bytes > size_bytes) return false;
  return live_bytes == 0 || (size_bytes - live_bytes) * kDeadPart > size_bytes;
}

absl::StatusOr<HistorySizes> MeasureHistory(EnvTree& tree, std::string_view name,
                                            WithHead with_head) {
  const std::string directory = StrCat(name, ".h5m");
  H5M_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, tree.List(directory));
  HistorySizes sizes;
  std::map<int64_t, uint64_t> generations;
  int64_t newest = 0;
  for (const DirectoryEntry& entry : entries) {
    const std::string path = StrCat(directory, "/", entry.name);
    if (NumberAfter(entry.name, "pages-")) {
      sizes.pages += SizeOf(tree, path);
    } else if (NumberAfter(entry.name, "stage-")) {
      sizes.stage += SizeOf(tree, path);
    } else if (NumberAfter(entry.name, "gen-")) {
      if (with_head == WithHead::kYes) sizes.next += DataBytes(tree, path);
    } else if (entry.name.rfind("index", 0) == 0) {
      (entry.name == "index" ? sizes.index : sizes.log) += SizeOf(tree, path);
    } else if (const auto generation = GenerationOfEntry(entry.name)) {
      const uint64_t bytes = DataBytes(tree, path);
      generations[*generation] += bytes;
      // The newest generation has no head-N.
      if (NumberAfter(entry.name, "sums-")) newest = std::max(newest, *generation);
    }
  }
  if (with_head == WithHead::kYes) sizes.head = DataBytes(tree, std::string(name));
  for (const auto& [generation, bytes] : generations) {
    (generation == newest ? sizes.sums : sizes.old) += bytes;
  }
  return sizes;
}

}  // namespace h5mirror::store
