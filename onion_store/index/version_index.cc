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

constexpr int64_t kUnknownTime = INT64_MIN;
constexpr int kSkippedRowsMax = 16;  // about what a seek costs

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

absl::StatusOr<FileRow> VersionIndex::ReadFileRow() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
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
  H5M_RETURN_IF_ERROR(query.Run());
  if (info.group) H5M_RETURN_IF_ERROR(PutGroup(info.version, *info.group));
  return info.source ? PutSource(info.version, *info.source) : absl::OkStatus();
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
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS " FROM version WHERE version = ?");
  query.Bind(version);
  H5M_ASSIGN_OR_RETURN(VersionRow row, OneVersion(query, StrCat("version ", version)));
  H5M_RETURN_IF_ERROR(FillTags({&row.info, 1}));
  H5M_RETURN_IF_ERROR(FillGroup(row.info));
  auto source = FindSource(version);
  // The version can be read without it.
  if (!source.ok() && !absl::IsDataLoss(source.status())) return source.status();
  if (source.ok()) row.info.source = *std::move(source);
  return row;
}

absl::StatusOr<VersionRow> VersionIndex::Newest() {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_,
                    "SELECT " H5M_VERSION_COLUMNS " FROM version ORDER BY version DESC LIMIT 1");
  auto row = OneVersion(query, "version");
  if (absl::IsNotFound(row.status())) return VersionRow();
  if (row.ok()) H5M_RETURN_IF_ERROR(FillGroup(row->info));
  return row;
}

absl::StatusOr<std::vector<VersionInfo>> VersionIndex::List(const VersionRange& range,
                                                            size_t limit) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
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
  H5M_RETURN_IF_ERROR(FillGroups(absl::MakeSpan(versions)));
  return versions;
}

absl::StatusOr<int64_t> VersionIndex::CountUpTo(VersionNumber newest) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT count(*) FROM version WHERE version <= ?");
  query.Bind(newest);
  int64_t count = query.Next() ? query.Int64(0) : 0;
  if (!query.status().ok()) return query.status();
  return count;
}

absl::StatusOr<VersionRow> VersionIndex::FindRequest(const std::array<uint8_t, 16>& request_id) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS " FROM version WHERE request_id = ?");
  query.BindBlob(View(request_id));
  return OneVersion(query, StrCat("request ", HexOf(request_id)));
}

absl::StatusOr<VersionRow> VersionIndex::FindCut(CutNumber cut) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  SqliteQuery query(*database_, "SELECT " H5M_VERSION_COLUMNS " FROM version WHERE cut = ?");
  query.Bind(cut);
  return OneVersion(query, StrCat("version of cut ", cut));
}

absl::StatusOr<uint64_t> VersionIndex::SizeMax(int64_t generation) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
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
  H5M_RETURN_IF_ERROR(OpenAgain());
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
  H5M_RETURN_IF_ERROR(OpenAgain());
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
