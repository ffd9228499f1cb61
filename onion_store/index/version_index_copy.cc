// Copies of a file in an archive: docs/reference/format.md, "Table archived_copy" and "Copies of
// files".
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/version_index.h"
#include "onion_store/object_store.h"

namespace h5mirror::store {
namespace {

// Made with the first copy.
constexpr char kArchivedCopy[] = R"sql(
CREATE TABLE IF NOT EXISTS archived_copy (
  id INTEGER PRIMARY KEY CHECK (id = 1), prefix TEXT NOT NULL, shows TEXT NOT NULL);
)sql";

// Of SQLite, at a time: others wait for the index so long.
constexpr int kCopyPages = 512;
// The bytes of a database's header that say which journal it has, and their value without WAL: so
// the copy is one file, without a log beside it.
constexpr uint64_t kJournalOffset = 18;
constexpr std::string_view kNoLog = "\x01\x01";

absl::StatusOr<bool> HasTable(SqliteDatabase& database, std::string_view name) {
  SqliteQuery query(database, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
  const bool there = query.Bind(name).Next();
  H5M_RETURN_IF_ERROR(query.status());
  return there;
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> OpenCopy(const SqliteVfs& vfs,
                                                         const std::string& name, int more_flags) {
  H5M_ASSIGN_OR_RETURN(auto copy,
                       SqliteDatabase::Open(vfs.name(), name, SQLITE_OPEN_READWRITE | more_flags));
  H5M_RETURN_IF_ERROR(copy->Execute(
      "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA locking_mode = EXCLUSIVE;"
      "PRAGMA temp_store = MEMORY;"));
  return copy;
}

// Whether the rows of `copy` lead to archived segments alone, besides the heads at `version`.
absl::Status CheckArchived(SqliteDatabase& copy, VersionNumber version) {
  SqliteQuery there(copy, "SELECT generation FROM version WHERE version = ?");
  if (!there.Bind(version).Next()) {
    H5M_RETURN_IF_ERROR(there.status());
    return absl::AbortedError(StrCat("version ", version, " was dropped meanwhile"));
  }
  const int64_t generation = there.Int64(0);
  H5M_ASSIGN_OR_RETURN(const bool has_archived, HasTable(copy, "archived"));
  const char* const sql =
      has_archived ? "SELECT segment FROM pages WHERE segment NOT IN (0, 9223372036854775807)"
                     " AND (generation < ?1 OR (generation = ?1 AND version < ?2)) AND segment NOT"
                     " IN (SELECT segment FROM archived WHERE state = 2) LIMIT 1"
                   : "SELECT segment FROM pages WHERE segment NOT IN (0, 9223372036854775807)"
                     " AND (generation < ?1 OR (generation = ?1 AND version < ?2)) LIMIT 1";
  SqliteQuery missing(copy, sql);
  if (!missing.Bind(generation).Bind(version).Next()) return missing.status();
  return absl::AbortedError(
      StrCat("segment ", missing.Int64(0), " of saved pages is not in the archive yet"));
}

// What a copy of ours never has: it would act by itself when rows change.
absl::Status CheckSchema(SqliteDatabase& database) {
  SqliteQuery query(database,
                    "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index')"
                    " OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1");
  if (!query.Next()) return query.status();
  return query.Damaged("it has something else than tables and indexes");
}

// Runs one statement with one number.
absl::Status RunWith(SqliteDatabase& database, const char* sql, int64_t number) {
  SqliteQuery query(database, sql);
  return query.Bind(number).Run();
}

// Forgets all after `version`, which is of `generation`.
absl::Status ForgetAfter(SqliteDatabase& database, VersionNumber version, int64_t generation) {
  for (const char* sql :
       {"DELETE FROM version WHERE version > ?", "DELETE FROM tags WHERE version > ?"}) {
    H5M_RETURN_IF_ERROR(RunWith(database, sql, version));
  }
  const std::pair<const char*, const char*> tables[] = {
      {"source", "DELETE FROM source WHERE version > ?"},
      {"group_cut", "DELETE FROM group_cut WHERE version > ?"},
      {"last_check", "DELETE FROM last_check WHERE version > ?"}};
  for (const auto& [table, sql] : tables) {
    H5M_ASSIGN_OR_RETURN(const bool there, HasTable(database, table));
    if (there) H5M_RETURN_IF_ERROR(RunWith(database, sql, version));
  }
  for (const char* sql :
       {"DELETE FROM generation WHERE generation > ?", "DELETE FROM pages WHERE generation > ?"}) {
    H5M_RETURN_IF_ERROR(RunWith(database, sql, generation));
  }
  SqliteQuery pages(database, "DELETE FROM pages WHERE generation = ? AND version >= ?");
  return pages.Bind(generation).Bind(version).Run();
}

// The number of the newest segment that a row names.
absl::StatusOr<uint64_t> LastSegment(SqliteDatabase& database, bool has_archived) {
  uint64_t last = 0;
  const char* const all[] = {"SELECT max(segment) FROM pages WHERE segment < 9223372036854775807",
                             "SELECT max(segment) FROM archived"};
  for (const char* sql : absl::MakeSpan(all).first(has_archived ? 2 : 1)) {
    SqliteQuery query(database, sql);
    if (query.Next())
      last = std::max(last, static_cast<uint64_t>(std::max<int64_t>(0, query.Int64(0))));
    H5M_RETURN_IF_ERROR(query.status());
  }
  return last;
}

// A row of a file that rests at `version`.
FileRow AtRest(FileRow row, const VersionInfo& version, uint64_t last_segment) {
  if (row.durable_cut != version.cut) {
    row.durable_barrier = {};
    row.local = {};
  }
  row.generation = version.generation;
  row.durable_cut = row.applied_cut = version.cut;
  row.durable_size_bytes = row.applied_size_bytes = version.size_bytes;
  row.applied_version = version.version;
  row.changed = false;
  row.changed_pages = row.sent_bytes = 0;
  row.stage_first = row.stage_last;
  row.stage_end_bytes = 0;
  row.pages_segment = std::max(row.pages_segment, last_segment) + 1;
  row.pages_end_bytes = 0;
  row.head = {};  // The next apply notes it.
  return row;
}

}  // namespace

absl::StatusOr<std::optional<ArchivedCopyRow>> VersionIndex::FindCopy() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  H5M_ASSIGN_OR_RETURN(const bool there, HasTable(*database_, "archived_copy"));
  if (!there) return std::nullopt;
  SqliteQuery query(*database_, "SELECT prefix, shows FROM archived_copy WHERE id = 1");
  if (!query.Next()) {
    H5M_RETURN_IF_ERROR(query.status());
    return std::nullopt;
  }
  ArchivedCopyRow row{query.Bytes(0), query.Bytes(1)};
  if (!row.prefix.empty() && !CheckObjectName(row.prefix).ok()) {
    return query.Damaged("its copy in the archive has a name that cannot be");
  }
  return row;
}

absl::Status VersionIndex::PutCopy(const ArchivedCopyRow& row) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_RETURN_IF_ERROR(database_->Execute(kArchivedCopy));
    H5M_RETURN_IF_ERROR(NeedFormat(kFormatArchived));
    SqliteQuery query(*database_, "INSERT OR REPLACE INTO archived_copy VALUES (1,?,?)");
    return query.Bind(row.prefix).Bind(row.shows).Run();
  });
}

absl::Status VersionIndex::DropCopy() {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return database_->Execute("DROP TABLE IF EXISTS archived_copy");
  });
}

absl::StatusOr<std::string> VersionIndex::Shows() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  std::string shows;
  {
    SqliteQuery query(*database_, "SELECT count(*), max(version) FROM version");
    if (query.Next()) shows = StrCat(query.Int64(0), " versions up to ", query.Int64(1));
    H5M_RETURN_IF_ERROR(query.status());
  }
  SqliteQuery query(*database_, "SELECT name, version FROM tags ORDER BY name");
  uint32_t crc = 0;
  while (query.Next()) crc = Crc32cExtend(crc, StrCat(query.Bytes(0), "=", query.Int64(1), "\n"));
  H5M_RETURN_IF_ERROR(query.status());
  return StrCat(shows, ", tags ", crc);
}

absl::Status VersionIndex::CopyTo(const std::string& name, VersionNumber version) {
  {
    H5M_ASSIGN_OR_RETURN(const auto to, OpenCopy(place_.vfs, name, SQLITE_OPEN_CREATE));
    {
      absl::MutexLock lock(&mutex_);
      H5M_RETURN_IF_ERROR(OpenAgain());
      is_copied_ = true;
    }
    const absl::Cleanup release = [this] {
      absl::MutexLock lock(&mutex_);
      is_copied_ = false;
    };
    std::optional<SqliteCopy> copy;
    const absl::Cleanup end = [&] {
      absl::MutexLock lock(&mutex_);
      copy.reset();
    };
    for (bool more = true; more;) {
      absl::MutexLock lock(&mutex_);
      H5M_RETURN_IF_ERROR(OpenAgain());
      if (!copy) copy.emplace(*database_, *to);
      H5M_ASSIGN_OR_RETURN(more, copy->Step(kCopyPages));
    }
  }
  {
    H5M_ASSIGN_OR_RETURN(const auto file, place_.tree.Open(name, OpenKind::kWrite, 0));
    H5M_RETURN_IF_ERROR(WriteAt(*file, kJournalOffset, kNoLog));
  }
  H5M_ASSIGN_OR_RETURN(const auto copied, OpenCopy(place_.vfs, name, 0));
  return CheckArchived(*copied, version);
}

absl::Status VersionIndex::GoBackTo(const RestoredState& state) {
  {
    absl::MutexLock lock(&mutex_);
    H5M_RETURN_IF_ERROR(OpenAgain());
    H5M_RETURN_IF_ERROR(CheckSchema(*database_));
    H5M_RETURN_IF_ERROR(CheckArchived(*database_, state.version));
  }
  H5M_ASSIGN_OR_RETURN(const VersionRow version, GetVersion(state.version));
  H5M_ASSIGN_OR_RETURN(const FileRow row, ReadFileRow());
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_ASSIGN_OR_RETURN(const bool has_archived, HasTable(*database_, "archived"));
    H5M_ASSIGN_OR_RETURN(const uint64_t last, LastSegment(*database_, has_archived));
    H5M_RETURN_IF_ERROR(ForgetAfter(*database_, state.version, version.info.generation));
    if (has_archived) {
      // Objects that were being put, or were about to go: the next job deletes them.
      H5M_RETURN_IF_ERROR(database_->Execute(state.keeps_archived
                                                 ? "UPDATE archived SET state = 3 WHERE state <> 2"
                                                 : "DROP TABLE archived"));
    }
    lacks_archived_ = false;
    H5M_RETURN_IF_ERROR(database_->Execute("DROP TABLE IF EXISTS archived_copy"));
    if (!state.copy_prefix.empty()) {
      H5M_RETURN_IF_ERROR(database_->Execute(kArchivedCopy));
      SqliteQuery query(*database_, "INSERT INTO archived_copy VALUES (1,?,'')");
      H5M_RETURN_IF_ERROR(query.Bind(state.copy_prefix).Run());
    }
    return PutFileRow(AtRest(row, version.info, last));
  });
}

}  // namespace h5mirror::store
