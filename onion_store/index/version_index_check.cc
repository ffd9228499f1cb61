// When the local file was last compared with its mirror: docs/reference/format.md,
// "Table last_check".
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

// The table is made with the first comparison: most files are never compared, and older programs do
// not know the table.
constexpr char kLastCheck[] = R"sql(
CREATE TABLE IF NOT EXISTS last_check (
  id INTEGER PRIMARY KEY CHECK (id = 1), time_ns INTEGER NOT NULL, version INTEGER NOT NULL,
  differing_bytes INTEGER NOT NULL, equal_time_ns INTEGER);
)sql";

}  // namespace

absl::StatusOr<std::optional<CheckInfo>> VersionIndex::LastCheck() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  {
    SqliteQuery query(*database_,
                      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'last_check'");
    const bool there = query.Next();
    if (!query.status().ok()) return query.status();
    if (!there) return std::nullopt;
  }
  SqliteQuery query(*database_,
                    "SELECT time_ns, version, differing_bytes, equal_time_ns IS NOT NULL,"
                    " ifnull(equal_time_ns, 0) FROM last_check WHERE id = 1");
  if (!query.Next()) {
    if (!query.status().ok()) return query.status();
    return std::nullopt;
  }
  CheckInfo check;
  check.time = absl::FromUnixNanos(query.Int64(0));
  check.version = query.Int64(1);
  const int64_t differing_bytes = query.Int64(2);
  if (query.Int64(3) != 0) check.equal_time = absl::FromUnixNanos(query.Int64(4));
  if (check.version < 1 || differing_bytes < 0) {
    return query.Damaged(StrCat("its last check has the version ", check.version, " and ",
                                differing_bytes,
                                " bytes that differ, one of which is out of range"));
  }
  check.differing_bytes = static_cast<uint64_t>(differing_bytes);
  return check;
}

absl::Status VersionIndex::SetLastCheck(const CheckInfo& check) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_RETURN_IF_ERROR(database_->Execute(kLastCheck));
    SqliteQuery query(*database_, "INSERT OR REPLACE INTO last_check VALUES (1,?,?,?,?)");
    query.Bind(absl::ToUnixNanos(check.time)).Bind(check.version).Bind(check.differing_bytes);
    if (check.equal_time != absl::InfinitePast()) query.Bind(absl::ToUnixNanos(check.equal_time));
    return query.Run();  // Unbound is NULL.
  });
}

}  // namespace h5mirror::store
