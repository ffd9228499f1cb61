#include "onion_store/index/version_index.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_format.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/row_checks.h"
#include "onion_store/stage/stage_log.h"

namespace h5mirror::store {
namespace {

constexpr int64_t kFormat = kFormatPacked;
constexpr int64_t kUnknownTime = INT64_MIN;
constexpr int kSkippedRowsMax = 16;  // about what a seek costs

constexpr char kSchema[] = R"sql(
PRAGMA application_id = 1211452721;
PRAGMA user_version = 1;
CREATE TABLE file (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  file_id BLOB NOT NULL, page_size_bytes INTEGER NOT NULL, generation INTEGER NOT NULL,
  cut_reserved INTEGER NOT NULL, durable_cut INTEGER NOT NULL, durable_size_bytes INTEGER NOT NULL,
  durable_session BLOB NOT NULL, durable_seq INTEGER NOT NULL, applied_cut INTEGER NOT NULL,
  applied_size_bytes INTEGER NOT NULL, applied_version INTEGER NOT NULL, changed INTEGER NOT NULL,
  changed_pages INTEGER NOT NULL, sent_bytes INTEGER NOT NULL, server_time_ns INTEGER NOT NULL,
  origin_machine_id TEXT NOT NULL, origin_host TEXT NOT NULL, origin_path TEXT NOT NULL,
  mode_bits INTEGER NOT NULL, local_inode INTEGER NOT NULL, local_size_bytes INTEGER NOT NULL,
  local_mtime_ns INTEGER NOT NULL, local_ctime_ns INTEGER NOT NULL, stage_first INTEGER NOT NULL,
  stage_last INTEGER NOT NULL, stage_end_bytes INTEGER NOT NULL, pages_segment INTEGER NOT NULL,
  pages_end_bytes INTEGER NOT NULL, head_inode INTEGER NOT NULL, head_size_bytes INTEGER NOT NULL,
  head_mtime_ns INTEGER NOT NULL, head_ctime_ns INTEGER NOT NULL);
CREATE TABLE generation (
  generation INTEGER PRIMARY KEY, first_cut INTEGER NOT NULL, direct_end_bytes INTEGER NOT NULL);
CREATE TABLE version (
  version INTEGER PRIMARY KEY, cut INTEGER NOT NULL UNIQUE, generation INTEGER NOT NULL,
  server_time_ns INTEGER NOT NULL, client_time_ns INTEGER NOT NULL, claimed_user TEXT NOT NULL,
  verified_user TEXT NOT NULL, host TEXT NOT NULL, program TEXT NOT NULL, pid INTEGER NOT NULL,
  comment TEXT NOT NULL, size_bytes INTEGER NOT NULL, changed_pages INTEGER NOT NULL,
  changed_bytes INTEGER NOT NULL, request_id BLOB UNIQUE);
CREATE INDEX version_size ON version (generation, size_bytes);
CREATE TABLE pages (
  generation INTEGER NOT NULL, level INTEGER NOT NULL, page INTEGER NOT NULL,
  version INTEGER NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL,
  PRIMARY KEY (generation, level, page, version)) WITHOUT ROWID;
)sql";

// What changed since a version, without looking at what did not. Older indexes lack it.
constexpr char kPagesByVersion[] =
    "CREATE INDEX IF NOT EXISTS pages_version ON pages (generation, version)";

// Exclusive locking first: it is what lets WAL do without shared memory.
// Names of versions. Older indexes lack them.
constexpr char kTags[] = R"sql(
CREATE TABLE IF NOT EXISTS tags (name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tags_version ON tags (version);
)sql";

constexpr char kSettings[] = R"sql(
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -256;
PRAGMA trusted_schema = OFF;
)sql";

std::string_view View(const std::array<uint8_t, 16>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int64_t ToNs(absl::Time time) {
  return time == absl::InfinitePast() ? kUnknownTime : absl::ToUnixNanos(time);
}
absl::Time FromNs(int64_t ns) {
  return ns == kUnknownTime ? absl::InfinitePast() : absl::FromUnixNanos(ns);
}

#define H5M_VERSION_COLUMNS                                                                 \
  "version, cut, generation, server_time_ns, client_time_ns, claimed_user, verified_user, " \
  "host, program, pid, comment, size_bytes, changed_pages, changed_bytes, request_id"

VersionRow ReadVersion(const SqliteQuery& query) {
  VersionRow row;
  VersionInfo& info = row.info;
  info.version = query.Int64(0);
  info.cut = query.Int64(1);
  info.generation = query.Int64(2);
  info.server_time = FromNs(query.Int64(3));
  info.provenance.client_time = FromNs(query.Int64(4));
  info.provenance.claimed_user = query.Bytes(5);
  info.provenance.verified_user = query.Bytes(6);
  info.provenance.host = query.Bytes(7);
  info.provenance.program = query.Bytes(8);
  info.provenance.pid = static_cast<uint32_t>(query.Int64(9));
  info.provenance.comment = query.Bytes(10);
  info.size_bytes = query.Int64(11);
  info.changed_pages = query.Int64(12);
  info.changed_bytes = query.Int64(13);
  if (!query.Bytes(14).empty()) row.request_id = query.Bytes16(14);
  return row;
}

absl::StatusOr<VersionRow> OneVersion(SqliteQuery& query, const std::string& what) {
  if (query.Next()) {
    VersionRow row = ReadVersion(query);
    H5M_RETURN_IF_ERROR(CheckVersion(query, row.info));
    return row;
  }
  if (!query.status().ok()) return query.status();
  return absl::NotFoundError(StrCat("no ", what));
}

}  // namespace

std::vector<const PageRun*> OwnersOf(absl::Span<const PageRun> runs, uint64_t first,
                                     uint64_t count) {
  std::vector<const PageRun*> owners(count, nullptr);
  for (const PageRun& run : runs) {
    uint64_t end = std::min(run.page_end(), first + count);
    for (uint64_t page = std::max(run.page, first); page < end; ++page) {
      const PageRun*& best = owners[page - first];
      if (best == nullptr ||
          std::tie(run.version, run.level) < std::tie(best->version, best->level)) {
        best = &run;
      }
    }
  }
  return owners;
}

absl::StatusOr<std::unique_ptr<VersionIndex>> VersionIndex::Create(
    const SqliteVfs& vfs, EnvTree& tree, const std::string& directory, const FileRow& row,
    absl::Span<const VersionRow> versions, const std::optional<GenerationRow>& generation) {
  // Made without syncs under another name: it counts once it is renamed.
  std::string name = StrCat(directory, "/index"), fresh = StrCat(name, ".new");
  for (const char* suffix : {"", "-wal", "-journal"}) {
    absl::Status removed = tree.Remove(StrCat(fresh, suffix));
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  {
    H5M_ASSIGN_OR_RETURN(
        auto database,
        SqliteDatabase::Open(vfs.name(), fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    H5M_RETURN_IF_ERROR(database->Execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;"));
    // Before anything is in it. Of a small file most of the index is tables and indexes of a row
    // each, which take a page each.
    H5M_RETURN_IF_ERROR(
        database->Execute("PRAGMA page_size = 1024; PRAGMA auto_vacuum = INCREMENTAL;"));
    H5M_RETURN_IF_ERROR(database->Execute(kSettings));
    H5M_RETURN_IF_ERROR(database->Execute("BEGIN"));
    H5M_RETURN_IF_ERROR(database->Execute(kSchema));
    H5M_RETURN_IF_ERROR(database->Execute(kPagesByVersion));
    H5M_RETURN_IF_ERROR(database->Execute(kTags));
    VersionIndex index(std::move(database));
    absl::MutexLock lock(&index.mutex_);
    H5M_RETURN_IF_ERROR(index.PutCuts(row, versions, generation));
    H5M_RETURN_IF_ERROR(index.database_->Execute("COMMIT"));
    // Here it costs no journal and no sync. The log that it opens stays empty.
    H5M_RETURN_IF_ERROR(index.database_->Execute("PRAGMA journal_mode = WAL;"));
  }
  // The log of the new index is made here, so that one sync of the directory names all. It must be
  // a new file: what an old one holds would count.
  for (const std::string& log : {StrCat(fresh, "-wal"), StrCat(name, "-wal")}) {
    absl::Status removed = tree.Remove(log);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  H5M_RETURN_IF_ERROR(tree.Open(StrCat(name, "-wal"), OpenKind::kCreateFresh, 0600).status());
  H5M_ASSIGN_OR_RETURN(auto file, tree.Open(fresh, OpenKind::kWrite, 0));
  H5M_RETURN_IF_ERROR(file->Sync());
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, name));
  H5M_RETURN_IF_ERROR(tree.SyncDirectory(directory));
  return Open(vfs, tree, directory);
}

absl::StatusOr<std::unique_ptr<VersionIndex>> VersionIndex::Open(const SqliteVfs& vfs,
                                                                 EnvTree& tree,
                                                                 const std::string& directory,
                                                                 IndexUse use) {
  std::string name = StrCat(directory, "/index");
  H5M_RETURN_IF_ERROR(tree.Stat(name).status());
  H5M_ASSIGN_OR_RETURN(auto database,
                       SqliteDatabase::Open(vfs.name(), name, SQLITE_OPEN_READWRITE));
  H5M_RETURN_IF_ERROR(database->Execute(kSettings));
  {
    SqliteQuery query(*database, "PRAGMA user_version");
    if (!query.Next()) {
      H5M_RETURN_IF_ERROR(query.status());
      return query.Damaged(StrCat("it has no format", kPutBack));
    }
    if (query.Int64(0) > kFormat || query.Int64(0) < 1) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s has format %d, this program knows 1 to %d", name, query.Int64(0), kFormat));
    }
  }
  if (use == IndexUse::kRead) {
    H5M_RETURN_IF_ERROR(database->Execute("PRAGMA query_only = ON;"));
    return std::unique_ptr<VersionIndex>(new VersionIndex(std::move(database)));
  }
  H5M_RETURN_IF_ERROR(database->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"));
  // Frames that an earlier life wrote may be in memory only, where a sync of it failed: they are
  // written again, to the database itself, before anything is appended to them.
  H5M_RETURN_IF_ERROR(database->Execute("PRAGMA wal_checkpoint(TRUNCATE);"));
  H5M_RETURN_IF_ERROR(database->Execute(kPagesByVersion));
  H5M_RETURN_IF_ERROR(database->Execute(kTags));
  return std::unique_ptr<VersionIndex>(new VersionIndex(std::move(database)));
}

absl::StatusOr<FileRow> VersionIndex::ReadFileRow() {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_,
                    "SELECT file_id, page_size_bytes, generation, cut_reserved, durable_cut,"
                    " durable_size_bytes, durable_session, durable_seq, applied_cut,"
                    " applied_size_bytes, applied_version, changed, changed_pages, sent_bytes,"
                    " server_time_ns, origin_machine_id, origin_host, origin_path, mode_bits,"
                    " local_inode, local_size_bytes, local_mtime_ns, local_ctime_ns, stage_first,"
                    " stage_last, stage_end_bytes, pages_segment, pages_end_bytes, head_inode,"
                    " head_size_bytes, head_mtime_ns, head_ctime_ns FROM file WHERE id = 1");
  if (!query.Next()) {
    H5M_RETURN_IF_ERROR(query.status());
    return query.Damaged(StrCat("it has no row for its file", kPutBack));
  }
  int column = 0;
  auto next = [&] { return query.Int64(column++); };
  FileRow row;
  row.file_id = query.Bytes16(column++);
  row.page_size_bytes = static_cast<uint32_t>(next());
  row.generation = next();
  row.cut_reserved = next();
  row.durable_cut = next();
  row.durable_size_bytes = next();
  row.durable_barrier.session_id = query.Bytes16(column++);
  row.durable_barrier.seq = next();
  row.applied_cut = next();
  row.applied_size_bytes = next();
  row.applied_version = next();
  row.changed = next() != 0;
  row.changed_pages = next();
  row.sent_bytes = next();
  row.server_time_ns = next();
  row.origin.machine_id = query.Bytes(column++);
  row.origin.host = query.Bytes(column++);
  row.origin.path = query.Bytes(column++);
  row.mode_bits = static_cast<uint32_t>(next());
  row.local = {static_cast<uint64_t>(query.Int64(column)), query.Int64(column + 1),
               query.Int64(column + 2), query.Int64(column + 3)};
  column += 4;
  row.stage_first = next();
  row.stage_last = next();
  row.stage_end_bytes = next();
  row.pages_segment = next();
  row.pages_end_bytes = next();
  row.head = {static_cast<uint64_t>(query.Int64(column)), query.Int64(column + 1),
              query.Int64(column + 2), query.Int64(column + 3)};
  H5M_RETURN_IF_ERROR(CheckFileRow(query, row));
  return row;
}

absl::Status VersionIndex::PutFileRow(const FileRow& row) {
  SqliteQuery query(*database_,
                    "INSERT OR REPLACE INTO file VALUES (1,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                    "?,?,?,?,?,?,?,?,?,?,?,?,?)");
  query.BindBlob(View(row.file_id))
      .Bind(row.page_size_bytes)
      .Bind(row.generation)
      .Bind(row.cut_reserved)
      .Bind(row.durable_cut)
      .Bind(row.durable_size_bytes)
      .BindBlob(View(row.durable_barrier.session_id))
      .Bind(row.durable_barrier.seq)
      .Bind(row.applied_cut)
      .Bind(row.applied_size_bytes)
      .Bind(row.applied_version)
      .Bind(row.changed)
      .Bind(row.changed_pages)
      .Bind(row.sent_bytes)
      .Bind(row.server_time_ns)
      .Bind(std::string_view(row.origin.machine_id))
      .Bind(std::string_view(row.origin.host))
      .Bind(std::string_view(row.origin.path))
      .Bind(row.mode_bits)
      .Bind(row.local.inode)
      .Bind(row.local.size_bytes)
      .Bind(row.local.mtime_ns)
      .Bind(row.local.ctime_ns)
      .Bind(row.stage_first)
      .Bind(row.stage_last)
      .Bind(row.stage_end_bytes)
      .Bind(row.pages_segment)
      .Bind(row.pages_end_bytes)
      .Bind(row.head.inode)
      .Bind(row.head.size_bytes)
      .Bind(row.head.mtime_ns)
      .Bind(row.head.ctime_ns);
  return query.Run();
}

absl::Status VersionIndex::PutVersion(const VersionRow& row) {
  const VersionInfo& info = row.info;
  SqliteQuery query(*database_, "INSERT INTO version (" H5M_VERSION_COLUMNS
                                ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  query.Bind(info.version)
      .Bind(info.cut)
      .Bind(info.generation)
      .Bind(ToNs(info.server_time))
      .Bind(ToNs(info.provenance.client_time))
      .Bind(std::string_view(info.provenance.claimed_user))
      .Bind(std::string_view(info.provenance.verified_user))
      .Bind(std::string_view(info.provenance.host))
      .Bind(std::string_view(info.provenance.program))
      .Bind(info.provenance.pid)
      .Bind(std::string_view(info.provenance.comment))
      .Bind(info.size_bytes)
      .Bind(info.changed_pages)
      .Bind(info.changed_bytes);
  if (row.request_id) query.BindBlob(View(*row.request_id));  // Unbound is NULL.
  return query.Run();
}

absl::Status VersionIndex::WriteFileRow(const FileRow& row) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return PutFileRow(row); });
}

absl::Status VersionIndex::CommitCuts(const FileRow& row, absl::Span<const VersionRow> versions,
                                      const std::optional<GenerationRow>& generation) {
  return InTransaction(
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return PutCuts(row, versions, generation); });
}

absl::Status VersionIndex::PutCuts(const FileRow& row, absl::Span<const VersionRow> versions,
                                   const std::optional<GenerationRow>& generation) {
  H5M_RETURN_IF_ERROR(PutFileRow(row));
  for (const VersionRow& version : versions) H5M_RETURN_IF_ERROR(PutVersion(version));
  if (!generation) return absl::OkStatus();
  SqliteQuery query(*database_, "INSERT INTO generation VALUES (?,?,?)");
  return query.Bind(generation->generation)
      .Bind(generation->first_cut)
      .Bind(generation->direct_end_bytes)
      .Run();
}

absl::Status VersionIndex::AddPages(const FileRow& row, absl::Span<const PageRun> runs) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_RETURN_IF_ERROR(PutFileRow(row));
    bool packed = false;
    for (const PageRun& run : runs) {
      SqliteQuery query(*database_, "INSERT INTO pages VALUES (?,?,?,?,?,?)");
      H5M_RETURN_IF_ERROR(query.Bind(row.generation)
                              .Bind(run.level)
                              .Bind(run.page)
                              .Bind(run.version)
                              .Bind(run.segment)
                              .Bind(OffsetColumn(run.offset, run.packed_bytes))
                              .Run());
      packed = packed || run.packed();
    }
    return packed ? NeedFormat(kFormatPacked) : absl::OkStatus();
  });
}

absl::Status VersionIndex::NeedFormat(int64_t format) {
  {
    SqliteQuery query(*database_, "PRAGMA user_version");
    const int64_t is = query.Next() ? query.Int64(0) : 0;
    if (!query.status().ok() || is >= format) return query.status();
  }
  return database_->Execute(StrCat("PRAGMA user_version = ", format).c_str());
}

absl::Status VersionIndex::CommitApplied(const FileRow& row, VersionNumber version,
                                         uint64_t changed_pages) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_RETURN_IF_ERROR(PutFileRow(row));
    if (version == 0) return absl::OkStatus();
    SqliteQuery query(*database_, "UPDATE version SET changed_pages = ? WHERE version = ?");
    return query.Bind(changed_pages).Bind(version).Run();
  });
}

absl::StatusOr<VersionRow> VersionIndex::GetVersion(VersionNumber version) {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS " FROM version WHERE version = ?");
  query.Bind(version);
  H5M_ASSIGN_OR_RETURN(VersionRow row, OneVersion(query, StrCat("version ", version)));
  H5M_RETURN_IF_ERROR(FillTags({&row.info, 1}));
  return row;
}

absl::StatusOr<VersionRow> VersionIndex::Newest() {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_,
                    "SELECT " H5M_VERSION_COLUMNS " FROM version ORDER BY version DESC LIMIT 1");
  auto row = OneVersion(query, "version");
  return absl::IsNotFound(row.status()) ? VersionRow() : row;
}

absl::StatusOr<std::vector<VersionInfo>> VersionIndex::List(const VersionRange& range,
                                                            size_t limit) {
  absl::MutexLock lock(&mutex_);
  VersionNumber before = range.before == 0 ? INT64_MAX : range.before;
  if (range.until != absl::InfiniteFuture()) {
    H5M_ASSIGN_OR_RETURN(VersionNumber newest, TimeLocked(range.until));
    before = std::min(before, newest + 1);
  }
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS
                                " FROM version WHERE version < ? ORDER BY version DESC LIMIT ?");
  query.Bind(before).Bind(static_cast<int64_t>(std::min<size_t>(limit, INT64_MAX)));
  std::vector<VersionInfo> versions;
  while (query.Next()) {
    VersionInfo info = ReadVersion(query).info;
    H5M_RETURN_IF_ERROR(CheckVersion(query, info));
    if (info.server_time < range.since) break;  // So are all that are older.
    versions.push_back(std::move(info));
  }
  if (!query.status().ok()) return query.status();
  H5M_RETURN_IF_ERROR(FillTags(absl::MakeSpan(versions)));
  return versions;
}

absl::StatusOr<int64_t> VersionIndex::CountUpTo(VersionNumber newest) {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_, "SELECT count(*) FROM version WHERE version <= ?");
  query.Bind(newest);
  int64_t count = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return count;
}

absl::StatusOr<VersionRow> VersionIndex::FindRequest(const std::array<uint8_t, 16>& request_id) {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS " FROM version WHERE request_id = ?");
  query.BindBlob(View(request_id));
  return OneVersion(query, StrCat("request ", HexOf(request_id)));
}

absl::StatusOr<VersionRow> VersionIndex::FindCut(CutNumber cut) {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS " FROM version WHERE cut = ?");
  query.Bind(cut);
  return OneVersion(query, StrCat("version of cut ", cut));
}

absl::StatusOr<uint64_t> VersionIndex::SizeMax(int64_t generation) {
  absl::MutexLock lock(&mutex_);
  SqliteQuery query(*database_, "SELECT max(size_bytes) FROM version WHERE generation = ?");
  query.Bind(generation);
  uint64_t size = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return size;
}

absl::StatusOr<std::optional<PageRun>> VersionIndex::SeekRun(int64_t generation, int level,
                                                             uint64_t page,
                                                             VersionNumber version_min,
                                                             uint64_t end) {
  while (page < end) {
    SqliteQuery query(
        *database_,
        "SELECT page, version, segment, offset FROM pages WHERE generation = ?"
        " AND level = ? AND (page, version) >= (?, ?) ORDER BY page, version LIMIT 1");
    query.Bind(generation).Bind(level).Bind(page).Bind(version_min);
    if (!query.Next()) {
      H5M_RETURN_IF_ERROR(query.status());
      return std::nullopt;
    }
    const PageRun run = ReadRun(query, 0, level);
    H5M_RETURN_IF_ERROR(CheckRun(query, run));
    if (run.version >= version_min) {
      return run.page < end ? std::optional<PageRun>(run) : std::nullopt;
    }
    page = run.page;  // It has runs, the first ones too old.
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<PageRun>> VersionIndex::FindPages(int64_t generation,
                                                             VersionNumber version_min,
                                                             uint64_t first, uint64_t end) {
  absl::MutexLock lock(&mutex_);
  std::vector<PageRun> runs;
  for (int level = 0; level <= kPageLevelMax; ++level) {
    H5M_RETURN_IF_ERROR(FindRuns(generation, level, version_min,
                                 RoundDown(first, uint64_t{1} << level), end, &runs));
  }
  return runs;
}

// Goes from row to row, and seeks where a page has many that do not count.
absl::Status VersionIndex::FindRuns(int64_t generation, int level, VersionNumber version_min,
                                    uint64_t first, uint64_t end, std::vector<PageRun>* runs) {
  uint64_t page = first;
  bool more = true;
  while (more && page < end) {
    SqliteQuery query(*database_,
                      "SELECT page, version, segment, offset FROM pages WHERE generation = ?"
                      " AND level = ? AND (page, version) >= (?, ?) AND page < ?"
                      " ORDER BY page, version");
    query.Bind(generation).Bind(level).Bind(page).Bind(version_min).Bind(end);
    more = false;
    for (int skipped = 0; query.Next();) {
      const PageRun run = ReadRun(query, 0, level);
      H5M_RETURN_IF_ERROR(CheckRun(query, run));
      if (run.page >= page && run.version >= version_min) {
        runs->push_back(run);
        page = run.page_end();
        skipped = 0;
      } else if (++skipped > kSkippedRowsMax) {
        page = std::max(page, run.page);
        more = true;
        break;
      }
    }
    H5M_RETURN_IF_ERROR(query.status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::vector<PageRun>>> VersionIndex::FindChanges(
    int64_t generation, VersionNumber version_min, size_t count_max) {
  absl::MutexLock lock(&mutex_);
  std::vector<PageRun> runs;
  SqliteQuery query(*database_,
                    "SELECT level, page, version, segment, offset FROM pages"
                    " INDEXED BY pages_version WHERE generation = ? AND version >= ?");
  query.Bind(generation).Bind(version_min);
  while (query.Next()) {
    if (runs.size() == count_max) return std::nullopt;
    runs.push_back(ReadRun(query, 1, static_cast<int>(query.Int64(0))));
    H5M_RETURN_IF_ERROR(CheckRun(query, runs.back()));
  }
  H5M_RETURN_IF_ERROR(query.status());
  std::sort(runs.begin(), runs.end(), [](const PageRun& a, const PageRun& b) {
    return std::tuple(a.page / kBlockPages, a.version, a.page) <
           std::tuple(b.page / kBlockPages, b.version, b.page);
  });
  return runs;
}

}  // namespace h5mirror::store
