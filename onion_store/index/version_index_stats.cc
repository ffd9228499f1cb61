// The cost of versions, in rows.
#include "base/strings.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

// Appends the rows of `query`, and moves `cursor` to the last one.
absl::StatusOr<bool> TakeRuns(SqliteQuery& query, size_t row_max, PagesCursor* cursor,
                              std::vector<PageRun>* runs) {
  size_t count = 0;
  for (; query.Next(); ++count) {
    const PageRun run = ReadRun(query, 1, static_cast<int>(query.Int64(0)));
    if (run.level < 0 || run.level > kPageLevelMax) {
      return query.Damaged(StrCat("a row of page ", run.page, " has the level ", run.level,
                                  ", which cannot be: 0 to ", kPageLevelMax));
    }
    cursor->level = run.level;
    cursor->page = run.page;
    cursor->version = run.version;
    runs->push_back(run);
  }
  if (!query.status().ok()) return query.status();
  return count == row_max;
}

}  // namespace

absl::StatusOr<bool> VersionIndex::ScanVersions(size_t row_max, VersionNumber after,
                                                std::vector<VersionSize>* versions) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT version, generation, size_bytes FROM version WHERE version > ?"
                    " ORDER BY version LIMIT ?");
  query.Bind(after).Bind(row_max);
  size_t count = 0;
  for (; query.Next(); ++count) {
    versions->push_back({query.Int64(0), query.Int64(1), static_cast<uint64_t>(query.Int64(2))});
  }
  if (!query.status().ok()) return query.status();
  return count == row_max;
}

absl::StatusOr<int64_t> VersionIndex::NextGenerationWithPages(int64_t after) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(
      *database_, "SELECT generation FROM pages WHERE generation > ? ORDER BY generation LIMIT 1");
  const int64_t found = query.Bind(after).Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return found;
}

absl::StatusOr<bool> VersionIndex::ScanLevel(size_t row_max, PagesCursor* cursor,
                                             std::vector<PageRun>* runs) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT level, page, version, segment, offset FROM pages"
                    " WHERE generation = ? AND level = ? AND (page, version) > (?, ?)"
                    " ORDER BY page, version LIMIT ?");
  query.Bind(cursor->generation)
      .Bind(cursor->level)
      .Bind(cursor->page)
      .Bind(cursor->version)
      .Bind(row_max);
  return TakeRuns(query, row_max, cursor, runs);
}

absl::StatusOr<bool> VersionIndex::ScanVersionRows(size_t row_max, PagesCursor* cursor,
                                                   std::vector<PageRun>* runs) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT level, page, version, segment, offset FROM pages"
                    " INDEXED BY pages_version WHERE generation = ? AND version = ?"
                    " AND (level, page) > (?, ?) ORDER BY level, page LIMIT ?");
  query.Bind(cursor->generation)
      .Bind(cursor->version)
      .Bind(cursor->level)
      .Bind(cursor->page)
      .Bind(row_max);
  return TakeRuns(query, row_max, cursor, runs);
}

}  // namespace h5mirror::store
