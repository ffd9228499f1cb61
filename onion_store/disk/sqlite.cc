#include "onion_store/disk/sqlite.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace h5mirror::store {

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const char* vfs,
                                                                     const std::string& name,
                                                                     int open_flags) {
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(name.c_str(), &handle, open_flags | SQLITE_OPEN_NOMUTEX, vfs);
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(handle, name));
  if (code != SQLITE_OK) return database->Error(code);
  sqlite3_extended_result_codes(handle, 1);
  // A connection that is given up after a failed sync must not write while it closes.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return database;
}

SqliteDatabase::~SqliteDatabase() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

absl::Status SqliteDatabase::Execute(const char* sql) {
  int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::Status SqliteDatabase::Error(int code) const {
  std::string text =
      StrCat(name_, ": ", handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(StrCat(text, kPutBack));
    case SQLITE_PERM:  // only from an open
      return absl::PermissionDeniedError(
          StrCat(text, ": the operating system does not let this process open it"));
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InternalError(text);
  }
}

SqliteCopy::SqliteCopy(SqliteDatabase& from, SqliteDatabase& to)
    : to_(to), backup_(sqlite3_backup_init(to.handle_, "main", from.handle_, "main")) {}

SqliteCopy::~SqliteCopy() { sqlite3_backup_finish(backup_); }

absl::StatusOr<bool> SqliteCopy::Step(int pages) {
  if (backup_ == nullptr) return to_.Error(sqlite3_errcode(to_.handle_));
  const int code = sqlite3_backup_step(backup_, pages);
  if (code == SQLITE_DONE) return false;
  if (code == SQLITE_OK) return true;
  return to_.Error(code);
}

SqliteQuery::SqliteQuery(SqliteDatabase& database, const char* sql) : database_(database) {
  sqlite3_stmt*& kept = database.statements_[sql];
  if (kept == nullptr) {
    int code =
        sqlite3_prepare_v3(database.handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &kept, nullptr);
    if (code != SQLITE_OK) status_ = database.Error(code);
  }
  statement_ = kept;
}

SqliteQuery::~SqliteQuery() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

SqliteQuery& SqliteQuery::Bind(int64_t value) {
  if (statement_ != nullptr) sqlite3_bind_int64(statement_, next_parameter_++, value);
  return *this;
}

SqliteQuery& SqliteQuery::Bind(std::string_view text) {
  if (statement_ != nullptr) {
    sqlite3_bind_text(statement_, next_parameter_++, text.data() == nullptr ? "" : text.data(),
                      static_cast<int>(text.size()), SQLITE_STATIC);
  }
  return *this;
}

SqliteQuery& SqliteQuery::BindBlob(std::string_view bytes) {
  if (statement_ != nullptr) {
    sqlite3_bind_blob(statement_, next_parameter_++, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_STATIC);
  }
  return *this;
}

bool SqliteQuery::Next() {
  if (!status_.ok()) return false;
  int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) status_ = database_.Error(code);
  return false;
}

absl::Status SqliteQuery::Run() {
  while (Next()) {
  }
  return status_;
}

std::string SqliteQuery::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

std::array<uint8_t, 16> SqliteQuery::Bytes16(int column) const {
  std::array<uint8_t, 16> out{};
  std::string bytes = Bytes(column);
  std::memcpy(out.data(), bytes.data(), std::min(bytes.size(), out.size()));
  return out;
}

absl::Status SqliteQuery::Damaged(std::string_view what) const {
  return absl::DataLossError(StrCat(database_.name_, " is damaged: ", what));
}

}  // namespace h5mirror::store
