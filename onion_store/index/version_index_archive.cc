// Segments of saved pages that have an object in an archive: docs/reference/format.md, "Table
// archived".
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/index_columns.h"
#include "onion_store/index/version_index.h"
#include "onion_store/object_store.h"

namespace h5mirror::store {
namespace {

// The table is made with its first row: a root without an archive has no such table.
constexpr char kArchived[] = R"sql(
CREATE TABLE IF NOT EXISTS archived (
  segment INTEGER PRIMARY KEY, object TEXT NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, crc32c INTEGER NOT NULL, state INTEGER NOT NULL);
)sql";

#define H5M_ARCHIVED_COLUMNS "segment, object, offset, length, crc32c, state"

// kDataLoss: it cannot be.
absl::StatusOr<ArchivedSegment> ReadArchived(const SqliteQuery& query) {
  const int64_t numbers[] = {query.Int64(0), query.Int64(2), query.Int64(3), query.Int64(4)};
  const int64_t state = query.Int64(5);
  ArchivedSegment segment;
  segment.object = query.Bytes(1);
  const bool is_sane = std::all_of(std::begin(numbers), std::end(numbers),
                                   [](int64_t number) { return number >= 0; }) &&
                       numbers[0] > 0 && numbers[3] <= UINT32_MAX &&
                       numbers[1] <= INT64_MAX - numbers[2] && state >= 1 && state <= 3 &&
                       CheckObjectName(segment.object).ok();
  if (!is_sane) {
    return query.Damaged(StrCat("segment ", numbers[0], " has a value out of range in its row"));
  }
  segment.segment = static_cast<uint64_t>(numbers[0]);
  segment.offset = static_cast<uint64_t>(numbers[1]);
  segment.length = static_cast<uint64_t>(numbers[2]);
  segment.crc32c = static_cast<uint32_t>(numbers[3]);
  segment.state = static_cast<ArchiveState>(state);
  return segment;
}

}  // namespace

absl::StatusOr<bool> VersionIndex::HasArchived() {
  if (lacks_archived_) return false;
  SqliteQuery query(*database_,
                    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'archived'");
  const bool there = query.Next();
  H5M_RETURN_IF_ERROR(query.status());
  lacks_archived_ = !there;
  return there;
}

absl::Status VersionIndex::PutArchived(const ArchivedSegment& segment) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    lacks_archived_ = false;  // The transaction may be rolled back: HasArchived() looks again.
    H5M_RETURN_IF_ERROR(database_->Execute(kArchived));
    H5M_RETURN_IF_ERROR(NeedFormat(kFormatArchived));
    SqliteQuery query(*database_, "INSERT OR REPLACE INTO archived VALUES (?,?,?,?,?,?)");
    return query.Bind(segment.segment)
        .Bind(segment.object)
        .Bind(segment.offset)
        .Bind(segment.length)
        .Bind(static_cast<int64_t>(segment.crc32c))
        .Bind(static_cast<int64_t>(segment.state))
        .Run();
  });
}

absl::StatusOr<std::optional<ArchivedSegment>> VersionIndex::FindArchived(uint64_t segment) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  H5M_ASSIGN_OR_RETURN(const bool there, HasArchived());
  if (!there) return std::nullopt;
  SqliteQuery query(*database_, "SELECT " H5M_ARCHIVED_COLUMNS " FROM archived WHERE segment = ?");
  if (query.Bind(segment).Next()) return ReadArchived(query);
  H5M_RETURN_IF_ERROR(query.status());
  return std::nullopt;
}

absl::StatusOr<std::vector<ArchivedSegment>> VersionIndex::ListArchived() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  std::vector<ArchivedSegment> segments;
  H5M_ASSIGN_OR_RETURN(const bool there, HasArchived());
  if (!there) return segments;
  SqliteQuery query(*database_, "SELECT " H5M_ARCHIVED_COLUMNS " FROM archived ORDER BY segment");
  while (query.Next()) {
    H5M_ASSIGN_OR_RETURN(ArchivedSegment segment, ReadArchived(query));
    segments.push_back(std::move(segment));
  }
  H5M_RETURN_IF_ERROR(query.status());
  return segments;
}

absl::Status VersionIndex::SetArchiveState(absl::Span<const uint64_t> segments,
                                           ArchiveState state) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    for (const uint64_t segment : segments) {
      SqliteQuery query(*database_, "UPDATE archived SET state = ? WHERE segment = ?");
      H5M_RETURN_IF_ERROR(query.Bind(static_cast<int64_t>(state)).Bind(segment).Run());
    }
    return absl::OkStatus();
  });
}

absl::Status VersionIndex::DropArchived(const ArchivedSegment& segment) {
  return InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SqliteQuery query(*database_, "DELETE FROM archived WHERE segment = ? AND object = ?");
    return query.Bind(segment.segment).Bind(segment.object).Run();
  });
}

absl::StatusOr<std::vector<uint64_t>> VersionIndex::ArchivedSince(int64_t generation,
                                                                  VersionNumber version_min) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  std::vector<uint64_t> segments;
  H5M_ASSIGN_OR_RETURN(const bool there, HasArchived());
  if (!there) return segments;
  // The index of the table includes the primary key: only `segment` is looked up.
  SqliteQuery query(*database_,
                    "SELECT DISTINCT segment FROM pages INDEXED BY pages_version"
                    " WHERE generation IN (SELECT generation FROM generation"
                    " WHERE ? IN (0, generation)) AND version >= ?"
                    " AND segment IN (SELECT segment FROM archived) ORDER BY segment");
  query.Bind(generation).Bind(version_min);
  while (query.Next()) segments.push_back(static_cast<uint64_t>(query.Int64(0)));
  H5M_RETURN_IF_ERROR(query.status());
  return segments;
}

}  // namespace h5mirror::store
