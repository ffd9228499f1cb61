// The sources of versions that have their bytes from other files: docs/reference/format.md, "Table
// source".
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

// The table is made with its first row: most files have none, and older programs do not know it.
constexpr char kSource[] = R"sql(
CREATE TABLE IF NOT EXISTS source (
  version INTEGER PRIMARY KEY, kind INTEGER NOT NULL, file_id BLOB NOT NULL, name TEXT NOT NULL,
  source_version INTEGER NOT NULL, source_cut INTEGER NOT NULL, time_ns INTEGER NOT NULL,
  claimed_user TEXT NOT NULL, verified_user TEXT NOT NULL);
)sql";

constexpr VersionNumber kForkVersion = 1;  // a file begins with it

std::string_view View(const FileId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

#define H5M_SOURCE_COLUMNS                                                            \
  "version, kind, file_id, name, source_version, source_cut, time_ns, claimed_user, " \
  "verified_user"

// kDataLoss: it cannot be.
absl::StatusOr<SourceVersion> ReadSource(const SqliteQuery& query) {
  const int64_t kind = query.Int64(1);
  SourceVersion source;
  source.kind = static_cast<SourceKind>(kind);
  source.file_id = query.Bytes16(2);
  source.name = query.Bytes(3);
  source.version = query.Int64(4);
  source.cut = query.Int64(5);
  source.time = absl::FromUnixNanos(query.Int64(6));
  source.claimed_user = query.Bytes(7);
  source.verified_user = query.Bytes(8);
  const bool is_known = kind == static_cast<int64_t>(SourceKind::kFork) ||
                        kind == static_cast<int64_t>(SourceKind::kPromotion);
  if (is_known && source.version >= 1 && source.cut >= 1) return source;
  return query.Damaged(StrCat("the source of version ", query.Int64(0), " has the kind ", kind,
                              ", version ", source.version, " and cut ", source.cut,
                              ", one of which is out of range"));
}

}  // namespace

absl::StatusOr<bool> VersionIndex::HasSources() {
  if (lacks_sources_) return false;
  SqliteQuery query(*database_,
                    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'source'");
  const bool there = query.Next();
  H5M_RETURN_IF_ERROR(query.status());
  lacks_sources_ = !there;
  return there;
}

absl::Status VersionIndex::PutSource(VersionNumber version, const SourceVersion& source) {
  lacks_sources_ = false;  // The transaction may be rolled back: HasSources() looks again.
  H5M_RETURN_IF_ERROR(database_->Execute(kSource));
  SqliteQuery query(*database_, "INSERT OR REPLACE INTO source VALUES (?,?,?,?,?,?,?,?,?)");
  return query.Bind(version)
      .Bind(static_cast<int64_t>(source.kind))
      .BindBlob(View(source.file_id))
      .Bind(std::string_view(source.name))
      .Bind(source.version)
      .Bind(source.cut)
      .Bind(absl::ToUnixNanos(source.time))
      .Bind(std::string_view(source.claimed_user))
      .Bind(std::string_view(source.verified_user))
      .Run();
}

absl::Status VersionIndex::DropSource(VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(const bool there, HasSources());
  if (!there) return absl::OkStatus();
  SqliteQuery query(*database_, "DELETE FROM source WHERE version = ? AND kind <> ?");
  return query.Bind(version).Bind(static_cast<int64_t>(SourceKind::kFork)).Run();
}

absl::StatusOr<std::optional<SourceVersion>> VersionIndex::FindSource(VersionNumber version) {
  H5M_ASSIGN_OR_RETURN(const bool there, HasSources());
  if (!there) return std::nullopt;
  SqliteQuery query(*database_, "SELECT " H5M_SOURCE_COLUMNS " FROM source WHERE version = ?");
  if (query.Bind(version).Next()) return ReadSource(query);
  H5M_RETURN_IF_ERROR(query.status());
  return std::nullopt;
}

absl::Status VersionIndex::CheckSources() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  H5M_ASSIGN_OR_RETURN(const bool there, HasSources());
  if (!there) return absl::OkStatus();
  SqliteQuery query(*database_, "SELECT " H5M_SOURCE_COLUMNS " FROM source ORDER BY version");
  while (query.Next()) H5M_RETURN_IF_ERROR(ReadSource(query).status());
  return query.status();
}

absl::StatusOr<std::optional<SourceVersion>> VersionIndex::SourceOf(VersionNumber version) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  return FindSource(version);
}

absl::StatusOr<std::optional<SourceVersion>> VersionIndex::ForkedFrom() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  auto found = FindSource(kForkVersion);
  if (!found.ok() || !*found || (*found)->kind == SourceKind::kFork) return found;
  return std::nullopt;
}

absl::StatusOr<VersionNumber> VersionIndex::LastPromotedFrom(const FileId& file_id,
                                                             VersionNumber below) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  H5M_ASSIGN_OR_RETURN(const bool there, HasSources());
  if (!there) return 0;
  SqliteQuery query(*database_,
                    "SELECT max(version) FROM source WHERE kind = ? AND file_id = ? "
                    "AND version < ?");
  query.Bind(static_cast<int64_t>(SourceKind::kPromotion)).BindBlob(View(file_id)).Bind(below);
  const VersionNumber found = query.Next() ? query.Int64(0) : 0;
  H5M_RETURN_IF_ERROR(query.status());
  return found;
}

}  // namespace h5mirror::store
