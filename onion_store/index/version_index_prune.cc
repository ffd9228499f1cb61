// Dropping versions: docs/design/032-pruning.md.
#include <algorithm>

#include "base/status_macros.h"
#include "onion_store/disk/coding.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

absl::StatusOr<bool> VersionIndex::HasVersion(VersionNumber version) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  return HasVersionLocked(version);
}

absl::StatusOr<bool> VersionIndex::HasVersionLocked(VersionNumber version) {
  SqliteQuery query(*database_, "SELECT 1 FROM version WHERE version = ?");
  const bool found = query.Bind(version).Next();
  if (!query.status().ok()) return query.status();
  return found;
}

absl::Status VersionIndex::DropVersions(absl::Span<const VersionNumber> versions) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    // A program that knows only format 1 expects one row of a version and page, and may find the
    // wrong one.
    H5M_RETURN_IF_ERROR(NeedFormat(kFormatDropped));
    for (VersionNumber version : versions) {
      SqliteQuery tags(*database_, "DELETE FROM tags WHERE version = ?");
      H5M_RETURN_IF_ERROR(tags.Bind(version).Run());
      H5M_RETURN_IF_ERROR(DropSource(version));
      H5M_RETURN_IF_ERROR(DropGroup(version));
      SqliteQuery query(*database_, "DELETE FROM version WHERE version = ?");
      H5M_RETURN_IF_ERROR(query.Bind(version).Run());
    }
    return absl::OkStatus();
  });
}

absl::Status VersionIndex::FindRetained(uint32_t page_size_bytes, MoveCursor* cursor) {
  VersionNumber retained = 0;
  {
    SqliteQuery query(*database_,
                      "SELECT version, generation FROM version WHERE version < ?"
                      " ORDER BY version DESC LIMIT 1");
    if (query.Bind(cursor->version).Next() && query.Int64(1) == cursor->generation) {
      retained = query.Int64(0);
    }
    H5M_RETURN_IF_ERROR(query.status());
  }
  if (retained == cursor->retained) return absl::OkStatus();
  cursor->retained = retained;
  // Not only the size of `retained`: an older version may be larger, and read pages saved here.
  SqliteQuery query(*database_,
                    "SELECT max(size_bytes) FROM version WHERE generation = ? AND version <= ?");
  query.Bind(cursor->generation).Bind(retained);
  const uint64_t size_bytes = query.Next() ? query.Int64(0) : 0;
  cursor->limit_pages = RoundUp(size_bytes, page_size_bytes) / page_size_bytes;
  return query.status();
}

absl::StatusOr<bool> VersionIndex::HasRow(int64_t generation, VersionNumber version, int level,
                                          uint64_t page) {
  SqliteQuery query(*database_,
                    "SELECT 1 FROM pages WHERE generation = ? AND level = ? AND page = ?"
                    " AND version = ?");
  const bool found = query.Bind(generation).Bind(level).Bind(page).Bind(version).Next();
  if (!query.status().ok()) return query.status();
  return found;
}

absl::StatusOr<bool> VersionIndex::Holds(int64_t generation, VersionNumber version, int level,
                                         uint64_t page) {
  for (int above = level; above <= kPageLevelMax; ++above) {
    const uint64_t first = RoundDown(page, uint64_t{1} << above);
    H5M_ASSIGN_OR_RETURN(const bool has, HasRow(generation, version, above, first));
    if (has) return true;
  }
  // In parts: each half has a row of its own, or halves with rows. Ends at the first missing part.
  struct Part {
    int level;
    uint64_t page;
  };
  if (level == 0) return false;
  std::vector<Part> open{{level - 1, page + (uint64_t{1} << (level - 1))}, {level - 1, page}};
  while (!open.empty()) {
    const Part part = open.back();
    open.pop_back();
    H5M_ASSIGN_OR_RETURN(const bool has, HasRow(generation, version, part.level, part.page));
    if (has) continue;
    if (part.level == 0) return false;
    const int half = part.level - 1;
    open.push_back({half, part.page + (uint64_t{1} << half)});
    open.push_back({half, part.page});
  }
  return true;
}

absl::Status VersionIndex::MoveRow(const MoveCursor& cursor, const PageRun& run) {
  bool needed = cursor.retained != 0 && run.page < cursor.limit_pages;
  if (needed) {
    H5M_ASSIGN_OR_RETURN(const bool has,
                         Holds(cursor.generation, cursor.retained, run.level, run.page));
    needed = !has;
  }
  SqliteQuery query(*database_, needed ? "UPDATE pages SET version = ? WHERE generation = ?"
                                         " AND level = ? AND page = ? AND version = ?"
                                       : "DELETE FROM pages WHERE ? != 0 AND generation = ?"
                                         " AND level = ? AND page = ? AND version = ?");
  return query.Bind(needed ? cursor.retained : 1)
      .Bind(cursor.generation)
      .Bind(run.level)
      .Bind(run.page)
      .Bind(run.version)
      .Run();
}

absl::StatusOr<bool> VersionIndex::MoveDropped(uint32_t page_size_bytes, size_t row_max,
                                               MoveCursor* cursor, int64_t* versions_done) {
  bool more = true;
  MoveCursor at = *cursor;
  int64_t done = 0;
  H5M_RETURN_IF_ERROR(InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    for (size_t rows = 0; rows < row_max; ++rows) {  // A retained version counts as one row.
      {
        SqliteQuery query(*database_,
                          "SELECT generation, version FROM pages INDEXED BY pages_version"
                          " WHERE (generation, version) >= (?, ?)"
                          " ORDER BY generation, version LIMIT 1");
        more = query.Bind(at.generation).Bind(at.version).Next();
        H5M_RETURN_IF_ERROR(query.status());
        if (!more) return absl::OkStatus();
        if (query.Int64(0) != at.generation) at.retained = at.limit_pages = 0;
        at.generation = query.Int64(0);
        at.version = query.Int64(1);
      }
      H5M_ASSIGN_OR_RETURN(const bool retained, HasVersionLocked(at.version));
      if (retained) {
        ++at.version;
        continue;
      }
      H5M_RETURN_IF_ERROR(FindRetained(page_size_bytes, &at));
      std::vector<PageRun> runs;
      {
        // The lowest level first: see docs/design/032-pruning.md.
        SqliteQuery query(*database_,
                          "SELECT level, page FROM pages INDEXED BY pages_version"
                          " WHERE generation = ? AND version = ? ORDER BY level, page LIMIT ?");
        query.Bind(at.generation).Bind(at.version).Bind(row_max - rows);
        while (query.Next()) {
          runs.push_back({static_cast<int>(query.Int64(0)), static_cast<uint64_t>(query.Int64(1)),
                          at.version, 0, 0});
        }
        H5M_RETURN_IF_ERROR(query.status());
      }
      for (const PageRun& run : runs) H5M_RETURN_IF_ERROR(MoveRow(at, run));
      if (runs.size() < row_max - rows) {
        ++at.version;
        ++done;
      }
      rows += runs.size();
    }
    return absl::OkStatus();
  }));
  *cursor = at;
  *versions_done += done;
  return more;
}

absl::StatusOr<bool> VersionIndex::ScanPages(size_t row_max, PagesCursor* cursor,
                                             std::vector<RunOfGeneration>* runs) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT generation, level, page, version, segment, offset FROM pages"
                    " WHERE (generation, level, page, version) > (?, ?, ?, ?)"
                    " ORDER BY generation, level, page, version LIMIT ?");
  query.Bind(cursor->generation)
      .Bind(cursor->level)
      .Bind(cursor->page)
      .Bind(cursor->version)
      .Bind(row_max);
  size_t count = 0;
  for (; query.Next(); ++count) {
    const PageRun run = ReadRun(query, 2, static_cast<int>(query.Int64(1)));
    *cursor = {query.Int64(0), run.level, run.page, run.version};
    runs->push_back({query.Int64(0), run});
  }
  if (!query.status().ok()) return query.status();
  return count == row_max;
}

absl::Status VersionIndex::MoveRuns(const FileRow& row, absl::Span<const MovedRun> moved) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_RETURN_IF_ERROR(PutFileRow(row));
    for (const MovedRun& run : moved) {
      SqliteQuery query(*database_,
                        "UPDATE pages SET segment = ?, offset = ? WHERE generation = ?"
                        " AND level = ? AND page = ? AND version = ? AND segment = ?");
      H5M_RETURN_IF_ERROR(query.Bind(run.segment)
                              .Bind(OffsetColumn(run.offset, run.from.packed_bytes))
                              .Bind(run.generation)
                              .Bind(run.from.level)
                              .Bind(run.from.page)
                              .Bind(run.from.version)
                              .Bind(run.from.segment)
                              .Run());
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<int64_t>> VersionIndex::UnusedGenerations(int64_t newest) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT generation FROM generation AS g WHERE generation < ? AND NOT EXISTS"
                    " (SELECT 1 FROM version WHERE version.generation = g.generation)"
                    " ORDER BY generation");
  query.Bind(newest);
  std::vector<int64_t> unused;
  while (query.Next()) unused.push_back(query.Int64(0));
  if (!query.status().ok()) return query.status();
  return unused;
}

absl::StatusOr<std::vector<int64_t>> VersionIndex::Generations() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT generation FROM generation ORDER BY generation");
  std::vector<int64_t> generations;
  while (query.Next()) generations.push_back(query.Int64(0));
  if (!query.status().ok()) return query.status();
  return generations;
}

absl::Status VersionIndex::DropGeneration(int64_t generation) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SqliteQuery query(*database_, "DELETE FROM generation WHERE generation = ?");
    return query.Bind(generation).Run();
  });
}

absl::StatusOr<bool> VersionIndex::Shrink() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  auto free_pages = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<int64_t> {
    SqliteQuery query(*database_, "PRAGMA freelist_count");
    const int64_t count = query.Next() ? query.Int64(0) : 0;
    if (!query.status().ok()) return query.status();
    return count;
  };
  H5M_ASSIGN_OR_RETURN(const int64_t before, free_pages());
  if (before == 0) return false;
  H5M_RETURN_IF_ERROR(SettleLog());
  const absl::Status freed = database_->Execute("PRAGMA incremental_vacuum(256)");
  is_unsure_ = !freed.ok();
  H5M_RETURN_IF_ERROR(freed);
  H5M_ASSIGN_OR_RETURN(const int64_t after, free_pages());
  return after > 0 && after < before;  // An older index keeps its free pages.
}

absl::Status VersionIndex::Checkpoint() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  return database_->Execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace h5mirror::store
