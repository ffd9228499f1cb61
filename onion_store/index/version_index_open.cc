// How an index is made, opened, closed between two calls and opened again.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/names_in_order.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

constexpr int64_t kFormat = kFormatArchived;

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

// Names of versions. Older indexes lack them.
constexpr char kTags[] = R"sql(
CREATE TABLE IF NOT EXISTS tags (name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tags_version ON tags (version);
)sql";

// Exclusive locking first: it is what lets WAL do without shared memory.
constexpr char kSettings[] = R"sql(
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -256;
PRAGMA trusted_schema = OFF;
)sql";

constexpr char kLog[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
constexpr char kEmptyLog[] = "PRAGMA wal_checkpoint(TRUNCATE);";
// A longer log is emptied when an index is opened again. SQLite empties its log by itself, but only
// if one connection both moves it to the database and writes on. Of an index that is closed after
// each commit the log would be moved with each commit from the thousandth page on, and grow.
constexpr int64_t kLogBytesMax = 256 << 10;

// kNotFound: there is none.
absl::StatusOr<std::unique_ptr<SqliteDatabase>> OpenDatabase(const IndexPlace& place) {
  const std::string name = StrCat(place.directory, "/index");
  H5M_RETURN_IF_ERROR(place.tree.Stat(name).status());
  H5M_ASSIGN_OR_RETURN(auto database,
                       SqliteDatabase::Open(place.vfs.name(), name, SQLITE_OPEN_READWRITE));
  H5M_RETURN_IF_ERROR(database->Execute(kSettings));
  return database;
}

// Never kNotFound: to callers that is a file without a history, whose rest they may remove.
absl::Status Replaced(const std::string& name) {
  return absl::DataLossError(
      StrCat(name, " was removed or replaced while its file was open", kPutBack));
}

absl::StatusOr<uint64_t> InodeOf(EnvTree& tree, const std::string& name) {
  const auto there = tree.Stat(name);
  if (absl::IsNotFound(there.status())) return Replaced(name);
  H5M_RETURN_IF_ERROR(there.status());
  return there->inode;
}

// Of a database that is opened again.
absl::Status PrepareLog(const IndexPlace& place, SqliteDatabase& database) {
  H5M_RETURN_IF_ERROR(database.Execute(kLog));
  const auto log = place.tree.Stat(StrCat(place.directory, "/index-wal"));
  if (!log.ok() || log->size_bytes <= kLogBytesMax) return absl::OkStatus();
  // On a full disk it stays as it is. After a failed sync the log has all of it still, and is moved
  // as a whole the next time.
  const absl::Status emptied = database.Execute(kEmptyLog);
  return absl::IsResourceExhausted(emptied) ? absl::OkStatus() : emptied;
}

// Writes the log of an earlier life over with itself, which needs no room, and syncs it: where a
// sync of it failed, its frames may be in memory only, and who reads the index takes them for
// durable.
absl::Status RewriteLog(const IndexPlace& place) {
  constexpr uint64_t kPieceBytes = 1 << 20;
  const auto log = place.tree.Open(StrCat(place.directory, "/index-wal"), OpenKind::kWrite, 0);
  if (absl::IsNotFound(log.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(log.status());
  H5M_ASSIGN_OR_RETURN(const uint64_t size, (*log)->Size());
  std::string piece;
  for (uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min(kPieceBytes, size - at));
    H5M_RETURN_IF_ERROR(ReadOrZeros(**log, at, absl::MakeSpan(piece)));
    H5M_RETURN_IF_ERROR(WriteAt(**log, at, piece));
  }
  return (*log)->Sync();
}

// Makes what older indexes lack. `emptied`: why the log could not be emptied; then an older index
// cannot be used.
absl::Status CompleteSchema(SqliteDatabase& database, const absl::Status& emptied) {
  if (emptied.ok()) {
    H5M_RETURN_IF_ERROR(database.Execute(kPagesByVersion));
    return database.Execute(kTags);
  }
  SqliteQuery query(database,
                    "SELECT COUNT(*) FROM sqlite_schema "
                    "WHERE name IN ('pages_version', 'tags', 'tags_version')");
  const bool is_whole = query.Next() && query.Int64(0) == 3;
  H5M_RETURN_IF_ERROR(query.status());
  return is_whole ? absl::OkStatus() : emptied;
}

}  // namespace

VersionIndex::~VersionIndex() {
  if (place_.open_indexes != nullptr) place_.open_indexes->Closed(*this);
}

void VersionIndex::GiveUp() {
  {
    absl::MutexLock lock(&mutex_);
    is_given_up_ = true;
    const auto is_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_copied_; };
    mutex_.Await(absl::Condition(&is_free));
    database_.reset();
  }
  if (place_.open_indexes != nullptr) place_.open_indexes->Closed(*this);
}

bool VersionIndex::TryClose() {
  if (!mutex_.TryLock()) return false;
  const bool may_close = !is_unsure_ && !owes_log_ && !is_copied_;
  if (may_close) database_.reset();
  mutex_.Unlock();
  return may_close;
}

// Whoever put a copy in its place has also to stop what knows the former one. A log that is missing
// would be made anew, without the commits that it held.
absl::Status VersionIndex::CheckNames() {
  const std::string name = StrCat(place_.directory, "/index");
  const std::pair<std::string, uint64_t> files[] = {{name, inode_}, {name + "-wal", log_inode_}};
  for (const auto& [file, inode] : files) {
    H5M_ASSIGN_OR_RETURN(const uint64_t there, InodeOf(place_.tree, file));
    if (there != inode) return Replaced(file);
  }
  return absl::OkStatus();
}

absl::Status VersionIndex::SettleLog() {
  if (!owes_log_) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(database_->Execute(kEmptyLog));
  owes_log_ = false;
  return absl::OkStatus();
}

absl::Status VersionIndex::OpenAgain() {
  if (is_given_up_) {
    return absl::UnavailableError(
        StrCat(place_.directory, "/index: the file was opened again, was moved or was removed"));
  }
  if (place_.open_indexes != nullptr) place_.open_indexes->Use(*this);
  if (database_ != nullptr) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(CheckNames());
  // All that is in the log was synced: after a failed commit it would not have been closed. So
  // there is nothing to write again, as where an earlier life left the log.
  auto opened = OpenDatabase(place_);
  if (absl::IsNotFound(opened.status())) return Replaced(StrCat(place_.directory, "/index"));
  H5M_RETURN_IF_ERROR(opened.status());
  database_ = *std::move(opened);
  if (const absl::Status ready = PrepareLog(place_, *database_); !ready.ok()) {
    database_.reset();
    return ready;
  }
  if (place_.open_indexes != nullptr) place_.open_indexes->Opened(*this);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<VersionIndex>> VersionIndex::Create(
    const IndexPlace& place, const FileRow& row, absl::Span<const VersionRow> versions,
    const std::optional<GenerationRow>& generation, absl::Span<const FileSync> named) {
  EnvTree& tree = place.tree;
  const std::string& directory = place.directory;
  // Made without syncs under another name: it counts once it is renamed.
  std::string name = StrCat(directory, "/index"), fresh = StrCat(name, ".new");
  for (const char* suffix : {"", "-wal", "-journal"}) {
    absl::Status removed = tree.Remove(StrCat(fresh, suffix));
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  {
    H5M_ASSIGN_OR_RETURN(
        auto database,
        SqliteDatabase::Open(place.vfs.name(), fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
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
    VersionIndex index({place.vfs, tree, directory}, std::move(database));
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
  std::vector<FileSync> syncs(named.begin(), named.end());
  syncs.push_back({file.get()});
  H5M_RETURN_IF_ERROR(tree.SyncAll(syncs));
  H5M_RETURN_IF_ERROR(tree.Rename(fresh, name));
  if (!KeepsNamesInOrder(tree)) H5M_RETURN_IF_ERROR(tree.SyncDirectory(directory));
  return Open(place);
}

absl::StatusOr<std::unique_ptr<VersionIndex>> VersionIndex::Open(const IndexPlace& place,
                                                                 IndexUse use) {
  H5M_ASSIGN_OR_RETURN(auto database, OpenDatabase(place));
  const std::string name = StrCat(place.directory, "/index");
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
    // It stays open: to open it again it would have to know whether others have changed it.
    return std::unique_ptr<VersionIndex>(
        new VersionIndex({place.vfs, place.tree, place.directory}, std::move(database)));
  }
  H5M_RETURN_IF_ERROR(database->Execute(kLog));
  // Frames that an earlier life wrote may be in memory only, where a sync of it failed: they are
  // written again, to the database itself, before anything is appended to them. On a full disk that
  // waits for the first transaction: all can be read before.
  const absl::Status emptied = database->Execute(kEmptyLog);
  H5M_RETURN_IF_ERROR(absl::IsResourceExhausted(emptied) ? RewriteLog(place) : emptied);
  H5M_RETURN_IF_ERROR(CompleteSchema(*database, emptied));
  H5M_ASSIGN_OR_RETURN(const uint64_t inode, InodeOf(place.tree, name));
  H5M_ASSIGN_OR_RETURN(const uint64_t log_inode, InodeOf(place.tree, StrCat(name, "-wal")));
  std::unique_ptr<VersionIndex> index(new VersionIndex(place, std::move(database)));
  {
    absl::MutexLock lock(&index->mutex_);  // It is not to be closed at once.
    index->inode_ = inode;
    index->log_inode_ = log_inode;
    index->owes_log_ = !emptied.ok();
    if (place.open_indexes != nullptr) place.open_indexes->Opened(*index);
  }
  return index;
}

}  // namespace h5mirror::store
