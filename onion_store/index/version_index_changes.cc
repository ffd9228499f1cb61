// Finds the pages that have rows of some versions.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "onion_store/disk/coding.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

absl::StatusOr<std::optional<std::vector<Extent>>> VersionIndex::FindChangedPages(
    int64_t generation, VersionNumber version_min, VersionNumber version_end, size_t count_max) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  std::vector<Extent> runs;
  SqliteQuery query(*database_,
                    "SELECT level, page FROM pages INDEXED BY pages_version"
                    " WHERE generation = ? AND version >= ? AND version < ?");
  query.Bind(generation).Bind(version_min).Bind(version_end);
  while (query.Next()) {
    if (runs.size() == count_max) return std::nullopt;
    runs.push_back({static_cast<uint64_t>(query.Int64(1)), uint64_t{1} << query.Int64(0)});
  }
  H5M_RETURN_IF_ERROR(query.status());
  std::sort(runs.begin(), runs.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  std::vector<Extent> merged;
  for (const Extent& run : runs) {
    if (merged.empty() || run.offset > merged.back().end()) {
      merged.push_back(run);
    } else {
      merged.back().length = std::max(merged.back().end(), run.end()) - merged.back().offset;
    }
  }
  return merged;
}

absl::StatusOr<std::optional<uint64_t>> VersionIndex::NextPage(int64_t generation,
                                                               VersionNumber version_min,
                                                               uint64_t page, uint64_t end) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  std::optional<uint64_t> next;
  for (int level = 0; level <= kPageLevelMax; ++level) {
    H5M_ASSIGN_OR_RETURN(std::optional<PageRun> run,
                         SeekRun(generation, level, RoundDown(page, uint64_t{1} << level),
                                 version_min, next ? *next : std::min<uint64_t>(end, INT64_MAX)));
    if (run) next = std::max(page, std::min(run->page, next.value_or(UINT64_MAX)));
  }
  return next;
}

}  // namespace h5mirror::store
