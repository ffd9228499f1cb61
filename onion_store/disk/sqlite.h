// A thin C++ face of SQLite: one connection, prepared statements kept, errors as absl::Status.
#ifndef H5MIRROR_ONION_STORE_DISK_SQLITE_H_
#define H5MIRROR_ONION_STORE_DISK_SQLITE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h5mirror::store {

// The way out of a damaged index: the end of a message.
constexpr std::string_view kPutBack =
    "; put back a copy of its directory, or remove the directory to forget the file's history";

// One run of a prepared statement. Not thread-safe. Must not outlive its database.
//
//   SqliteQuery query(db, "SELECT cut FROM version WHERE version = ?");
//   query.Bind(version);
//   while (query.Next()) cut = query.Int64(0);
//   return query.status();
class SqliteQuery {
 public:
  SqliteQuery(class SqliteDatabase& database, const char* sql);
  SqliteQuery(const SqliteQuery&) = delete;
  ~SqliteQuery();

  // Binds the next parameter. Texts must live until the last Next().
  SqliteQuery& Bind(int64_t value);
  SqliteQuery& Bind(std::string_view text);
  SqliteQuery& BindBlob(std::string_view bytes);

  // Goes to the next row. False: there is none, or an error has occurred.
  bool Next();
  // Runs a statement that gives no rows.
  absl::Status Run();
  const absl::Status& status() const { return status_; }
  // kDataLoss that names the database's file: a row holds what cannot be.
  absl::Status Damaged(std::string_view what) const;

  int64_t Int64(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string Bytes(int column) const;
  // A shorter blob leaves the rest zero.
  std::array<uint8_t, 16> Bytes16(int column) const;

 private:
  class SqliteDatabase& database_;
  sqlite3_stmt* statement_ = nullptr;
  int next_parameter_ = 1;
  absl::Status status_;
};

// Not thread-safe.
class SqliteDatabase {
 public:
  friend class SqliteCopy;
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const char* vfs,
                                                              const std::string& name,
                                                              int open_flags);
  SqliteDatabase(const SqliteDatabase&) = delete;
  ~SqliteDatabase();

  absl::Status Execute(const char* sql);
  // The last error. Codes: kDataLoss a damaged file; kResourceExhausted a full disk;
  // kPermissionDenied the operating system refuses to open it; else kInternal. The message names
  // the file.
  absl::Status Error(int code) const;

 private:
  friend class SqliteQuery;
  SqliteDatabase(sqlite3* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  sqlite3* handle_;
  std::string name_;
  absl::flat_hash_map<const char*, sqlite3_stmt*> statements_;  // by the address of the literal
};

// Copies one database over another, some pages at a time. What the first one's connection changes
// meanwhile is in the copy as well. Not thread-safe. Both must outlive this.
class SqliteCopy {
 public:
  SqliteCopy(SqliteDatabase& from, SqliteDatabase& to);
  SqliteCopy(const SqliteCopy&) = delete;
  ~SqliteCopy();

  // Copies at most `pages` pages. False: the copy is whole. Errors: as SqliteDatabase::Error().
  absl::StatusOr<bool> Step(int pages);

 private:
  SqliteDatabase& to_;
  sqlite3_backup* backup_;  // null: it cannot begin
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_SQLITE_H_
