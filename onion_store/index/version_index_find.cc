// Finds the version that a place in the history, a time or a tag names.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {
namespace {

// The most tags of a version, and of all versions of a file together: an answer holds all tags of a
// version.
constexpr int64_t kVersionTagsMax = 100;
constexpr int64_t kFileTagsMax = 10'000;

// Whether `version` may get a tag that `previous` has now; 0: no version has it.
absl::Status CheckRoomForTag(SqliteDatabase& database, VersionNumber version,
                             VersionNumber previous) {
  const auto count = [](SqliteQuery& query) { return query.Next() ? query.Int64(0) : 0; };
  SqliteQuery of_version(database, "SELECT count(*) FROM tags WHERE version = ?");
  const int64_t version_tags = count(of_version.Bind(version));
  H5M_RETURN_IF_ERROR(of_version.status());
  if (version_tags >= kVersionTagsMax) {
    return absl::ResourceExhaustedError(StrCat("version ", version, " has ", version_tags,
                                               " tags, and at most ", kVersionTagsMax,
                                               " are allowed: untag some first"));
  }
  if (previous != 0) return absl::OkStatus();  // It moves.
  SqliteQuery of_file(database, "SELECT count(*) FROM tags");
  const int64_t file_tags = count(of_file);
  H5M_RETURN_IF_ERROR(of_file.status());
  if (file_tags < kFileTagsMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat("the versions have ", file_tags, " tags, and at most ",
                                             kFileTagsMax, " are allowed: untag some first"));
}

}  // namespace

absl::StatusOr<VersionNumber> VersionIndex::FindBack(int64_t back) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  // Cuts rise with versions. Their index holds only cuts, so a page of it has hundreds.
  SqliteQuery query(*database_,
                    "SELECT version FROM version WHERE cut > 0 ORDER BY cut DESC LIMIT 1 OFFSET ?");
  query.Bind(back);
  VersionNumber found = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return found;
}

absl::StatusOr<VersionNumber> VersionIndex::FindTime(absl::Time time) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  return TimeLocked(time);
}

// Times rise with version numbers, of which some may be missing: halves the range of numbers until
// one is left.
absl::StatusOr<VersionNumber> VersionIndex::TimeLocked(absl::Time time) {
  const int64_t time_ns = absl::ToUnixNanos(time);  // The first or the last one beyond the range.
  VersionNumber found = 0, low = 0, high = 0;
  {
    SqliteQuery query(*database_, "SELECT max(version) FROM version");
    high = query.Next() ? query.Int64(0) + 1 : 1;
    H5M_RETURN_IF_ERROR(query.status());
  }
  // Versions up to `low` are not later than `time`, those from `high` on are.
  while (high - low > 1) {
    const VersionNumber middle = low + (high - low) / 2;
    SqliteQuery query(*database_,
                      "SELECT version, server_time_ns FROM version WHERE version <= ?"
                      " ORDER BY version DESC LIMIT 1");
    query.Bind(middle);
    const VersionNumber version = query.Next() ? query.Int64(0) : 0;
    H5M_RETURN_IF_ERROR(query.status());
    if (version > low && query.Int64(1) > time_ns) {
      high = version;
    } else {
      found = std::max(found, version);
      low = middle;
    }
  }
  return found;
}

absl::StatusOr<VersionNumber> VersionIndex::FindTag(std::string_view tag) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  return TagLocked(tag);
}

absl::StatusOr<VersionNumber> VersionIndex::TagLocked(std::string_view tag) {
  SqliteQuery query(*database_, "SELECT version FROM tags WHERE name = ?");
  query.Bind(tag);
  VersionNumber found = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return found;
}

absl::StatusOr<std::vector<std::string>> VersionIndex::TagsOf(VersionNumber version) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  VersionInfo info;
  info.version = version;
  H5M_RETURN_IF_ERROR(FillTags({&info, 1}));
  return std::move(info.tags);
}

absl::Status VersionIndex::FillTags(absl::Span<VersionInfo> versions) {
  if (versions.empty()) return absl::OkStatus();
  SqliteQuery query(*database_,
                    "SELECT version, name FROM tags INDEXED BY tags_version"
                    " WHERE version BETWEEN ? AND ? ORDER BY version DESC, name");
  query.Bind(versions.back().version).Bind(versions.front().version);
  for (auto at = versions.begin(); query.Next();) {
    while (at != versions.end() && at->version > query.Int64(0)) ++at;
    if (at == versions.end()) break;
    if (at->version == query.Int64(0)) at->tags.push_back(query.Bytes(1));
  }
  return query.status();
}

absl::StatusOr<VersionNumber> VersionIndex::SetTag(VersionNumber version, std::string_view tag,
                                                   TagMode mode) {
  VersionNumber previous = 0;
  H5M_RETURN_IF_ERROR(InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    SqliteQuery exists(*database_, "SELECT 1 FROM version WHERE version = ?");
    if (!exists.Bind(version).Next()) {
      H5M_RETURN_IF_ERROR(exists.status());
      return absl::NotFoundError(StrCat("no version ", version));
    }
    H5M_ASSIGN_OR_RETURN(previous, TagLocked(tag));
    if (previous == version) return absl::OkStatus();
    if (previous != 0 && mode == TagMode::kKeep) {
      return absl::AlreadyExistsError(StrCat("version ", previous, " has tag '", tag, "'"));
    }
    H5M_RETURN_IF_ERROR(CheckRoomForTag(*database_, version, previous));
    SqliteQuery query(*database_, "INSERT OR REPLACE INTO tags VALUES (?,?)");
    return query.Bind(tag).Bind(version).Run();
  }));
  return previous;
}

absl::StatusOr<VersionNumber> VersionIndex::RemoveTag(std::string_view tag) {
  VersionNumber previous = 0;
  H5M_RETURN_IF_ERROR(InTransaction([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    H5M_ASSIGN_OR_RETURN(previous, TagLocked(tag));
    SqliteQuery query(*database_, "DELETE FROM tags WHERE name = ?");
    return query.Bind(tag).Run();
  }));
  return previous;
}

absl::StatusOr<uint64_t> VersionIndex::CountTags() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT count(*) FROM tags");
  const int64_t count = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return static_cast<uint64_t>(count);
}

absl::StatusOr<GenerationRow> VersionIndex::GetGeneration(int64_t generation) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT first_cut, direct_end_bytes FROM generation WHERE generation = ?");
  query.Bind(generation);
  if (query.Next()) {
    return GenerationRow{generation, query.Int64(0), static_cast<uint64_t>(query.Int64(1))};
  }
  if (!query.status().ok()) return query.status();
  return query.Damaged(StrCat("it has no generation ", generation));
}

absl::StatusOr<std::vector<VersionNumber>> VersionIndex::LargerThan(uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  std::vector<VersionNumber> found;
  SqliteQuery query(*database_,
                    "SELECT version FROM version WHERE generation IN (SELECT generation FROM"
                    " generation) AND size_bytes > ? ORDER BY version");
  query.Bind(static_cast<int64_t>(std::min<uint64_t>(size_bytes, INT64_MAX)));
  while (query.Next()) found.push_back(query.Int64(0));
  if (!query.status().ok()) return query.status();
  return found;
}

absl::StatusOr<VersionNumber> VersionIndex::NewestUpTo(uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT max(version) FROM version WHERE size_bytes <= ?");
  query.Bind(static_cast<int64_t>(std::min<uint64_t>(size_bytes, INT64_MAX)));
  const VersionNumber found = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return found;
}

}  // namespace h5mirror::store
