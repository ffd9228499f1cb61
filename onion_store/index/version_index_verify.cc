// The questions of a verification to the index.
#include <algorithm>

#include "base/status_macros.h"
#include "onion_store/disk/coding.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

absl::StatusOr<std::vector<std::string>> VersionIndex::CheckWhole() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "PRAGMA integrity_check(20)");
  std::vector<std::string> wrong;
  while (query.Next()) {
    if (query.Bytes(0) != "ok") wrong.push_back(query.Bytes(0));
  }
  if (absl::IsDataLoss(query.status())) {
    wrong.push_back(std::string(query.status().message()));
  } else if (!query.status().ok()) {
    return query.status();
  }
  return wrong;
}

absl::StatusOr<bool> VersionIndex::HasRun(int64_t generation, const PageRun& run) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT 1 FROM pages WHERE generation = ? AND level = ? AND page = ?"
                    " AND version = ? AND segment = ? AND offset = ?");
  const bool found = query.Bind(generation)
                         .Bind(run.level)
                         .Bind(run.page)
                         .Bind(run.version)
                         .Bind(run.segment)
                         .Bind(OffsetColumn(run.offset, run.packed_bytes))
                         .Next();
  if (!query.status().ok()) return query.status();
  return found;
}

absl::StatusOr<std::pair<VersionNumber, VersionNumber>> VersionIndex::ReadersOf(
    int64_t generation, uint64_t page, VersionNumber up_to, uint64_t beyond_bytes) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  VersionNumber after = 0;  // the newest earlier version with a row of its own for the page
  for (int level = 0; level <= kPageLevelMax; ++level) {
    SqliteQuery query(*database_,
                      "SELECT version FROM pages WHERE generation = ? AND level = ? AND page = ?"
                      " AND version < ? ORDER BY version DESC LIMIT 1");
    query.Bind(generation).Bind(level).Bind(RoundDown(page, uint64_t{1} << level)).Bind(up_to);
    if (query.Next()) after = std::max(after, query.Int64(0));
    H5M_RETURN_IF_ERROR(query.status());
  }
  std::pair<VersionNumber, VersionNumber> readers{0, 0};
  SqliteQuery query(*database_,
                    "SELECT min(version), max(version) FROM version"
                    " WHERE version > ? AND version <= ? AND generation = ? AND size_bytes > ?");
  query.Bind(after).Bind(up_to).Bind(generation).Bind(static_cast<int64_t>(beyond_bytes));
  if (query.Next()) readers = {query.Int64(0), query.Int64(1)};
  if (!query.status().ok()) return query.status();
  return readers;
}

}  // namespace h5mirror::store
