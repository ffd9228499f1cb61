// Faults of a prune: see store_faults.h.
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "onion_store/index/dropped_versions.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/page_segments.h"
#include "tests/crash/store_faults.h"

namespace h5mirror::store {
namespace {

// What a fault makes of the text of a statement.
struct ChangedText {
  StoreFault fault;
  const char* text;
  const char* changed;
};
constexpr ChangedText kChangedTexts[] = {
    {StoreFault::kLongestFirst, "ORDER BY level, page LIMIT", "ORDER BY level DESC, page LIMIT"},
    {StoreFault::kSizeOfKeptOnly, "generation = ? AND version <= ?",
     "generation = ? AND version = ?"},
    {StoreFault::kOldestKeptGets,
     "SELECT version, generation FROM version WHERE version < ? ORDER BY version DESC",
     "SELECT version, generation FROM version WHERE version < ? ORDER BY version"},
    {StoreFault::kTagsKept, "DELETE FROM tags WHERE version = ?",
     "DELETE FROM tags WHERE 0 AND version = ?"},
};

// Of kFreedBeforeTransaction: rows that wait for their segment to go. One store is open.
struct Waiting {
  VersionIndex* index = nullptr;
  FileRow row;
  std::vector<MovedRun> moved;
};
Waiting waiting;
std::atomic<bool> copied{false};  // of kCopiesNotSynced

}  // namespace

// By their names for the linker, as in store_faults.cc; a method is a function of its object.
int RealPrepare(sqlite3* database, const char* sql, int size, unsigned flags,
                sqlite3_stmt** statement, const char** tail) __asm__("__real_sqlite3_prepare_v3");
int FaultyPrepare(sqlite3* database, const char* sql, int size, unsigned flags,
                  sqlite3_stmt** statement, const char** tail) __asm__("__wrap_sqlite3_prepare_v3");
absl::Status
RealMoveRuns(VersionIndex* index, const FileRow& row, absl::Span<const MovedRun> moved) __asm__(
    "__real__ZN8h5mirror5store12VersionIndex8MoveRunsERKNS0_7FileRowEN4absl7debian34SpanIKNS0_"
    "8MovedRunEEE");
absl::Status
FaultyMoveRuns(VersionIndex* index, const FileRow& row, absl::Span<const MovedRun> moved) __asm__(
    "__wrap__ZN8h5mirror5store12VersionIndex8MoveRunsERKNS0_7FileRowEN4absl7debian34SpanIKNS0_"
    "8MovedRunEEE");
absl::Status RealRemove(PageSegments* pages, uint64_t number) __asm__(
    "__real__ZN8h5mirror5store12PageSegments6RemoveEm");
absl::Status FaultyRemove(PageSegments* pages, uint64_t number) __asm__(
    "__wrap__ZN8h5mirror5store12PageSegments6RemoveEm");
absl::StatusOr<PageRun> RealCopy(
    PageSegments* pages, const PageRun& run,
    int64_t generation) __asm__("__real__ZN8h5mirror5store12PageSegments4CopyERKNS0_7PageRunEl");
absl::StatusOr<PageRun> FaultyCopy(
    PageSegments* pages, const PageRun& run,
    int64_t generation) __asm__("__wrap__ZN8h5mirror5store12PageSegments4CopyERKNS0_7PageRunEl");
absl::Status RealSync(PageSegments* pages) __asm__(
    "__real__ZN8h5mirror5store12PageSegments4SyncEv");
absl::Status FaultySync(PageSegments* pages) __asm__(
    "__wrap__ZN8h5mirror5store12PageSegments4SyncEv");
absl::Status
RealDropVersions(VersionIndex* index, absl::Span<const VersionNumber> versions) __asm__(
    "__real__ZN8h5mirror5store12VersionIndex12DropVersionsEN4absl7debian34SpanIKlEE");
absl::Status
FaultyDropVersions(VersionIndex* index, absl::Span<const VersionNumber> versions) __asm__(
    "__wrap__ZN8h5mirror5store12VersionIndex12DropVersionsEN4absl7debian34SpanIKlEE");
absl::StatusOr<bool>
RealMoveDropped(VersionIndex* index, uint32_t page_size_bytes, size_t row_max, MoveCursor* cursor, int64_t* versions_done) __asm__(
    "__real__ZN8h5mirror5store12VersionIndex11MoveDroppedEjmPNS0_10MoveCursorEPl");
absl::StatusOr<bool>
FaultyMoveDropped(VersionIndex* index, uint32_t page_size_bytes, size_t row_max, MoveCursor* cursor, int64_t* versions_done) __asm__(
    "__wrap__ZN8h5mirror5store12VersionIndex11MoveDroppedEjmPNS0_10MoveCursorEPl");
absl::Status RealDropGeneration(VersionIndex* index, int64_t generation) __asm__(
    "__real__ZN8h5mirror5store12VersionIndex14DropGenerationEl");
absl::Status FaultyDropGeneration(VersionIndex* index, int64_t generation) __asm__(
    "__wrap__ZN8h5mirror5store12VersionIndex14DropGenerationEl");
absl::Status
RealCheckNotDropped(const DroppedVersions* dropped, VersionIndex& index, VersionNumber version, uint64_t epoch) __asm__(
    "__real__ZNK8h5mirror5store15DroppedVersions15CheckNotDroppedERNS0_12VersionIndexElm");
absl::Status
FaultyCheckNotDropped(const DroppedVersions* dropped, VersionIndex& index, VersionNumber version, uint64_t epoch) __asm__(
    "__wrap__ZNK8h5mirror5store15DroppedVersions15CheckNotDroppedERNS0_12VersionIndexElm");

int FaultyPrepare(sqlite3* database, const char* sql, int size, unsigned flags,
                  sqlite3_stmt** statement, const char** tail) {
  std::string text = sql;
  for (const ChangedText& change : kChangedTexts) {
    const size_t at = text.find(change.text);
    if (!IsPlanted(change.fault) || at == text.npos) continue;
    text.replace(at, std::string(change.text).size(), change.changed);
    return RealPrepare(database, text.c_str(), -1, flags, statement, tail);
  }
  return RealPrepare(database, sql, size, flags, statement, tail);
}

absl::Status FaultyMoveRuns(VersionIndex* index, const FileRow& row,
                            absl::Span<const MovedRun> moved) {
  if (!IsPlanted(StoreFault::kFreedBeforeTransaction)) return RealMoveRuns(index, row, moved);
  waiting = {index, row, {moved.begin(), moved.end()}};
  return absl::OkStatus();
}

absl::Status FaultyRemove(PageSegments* pages, uint64_t number) {
  absl::Status removed = RealRemove(pages, number);
  if (Waiting late = std::exchange(waiting, {}); late.index != nullptr) {
    H5M_RETURN_IF_ERROR(RealMoveRuns(late.index, late.row, late.moved));
  }
  return removed;
}

absl::StatusOr<PageRun> FaultyCopy(PageSegments* pages, const PageRun& run, int64_t generation) {
  copied = true;
  return RealCopy(pages, run, generation);
}

absl::Status FaultySync(PageSegments* pages) {
  const bool of_copies = copied.exchange(false);
  if (of_copies && IsPlanted(StoreFault::kCopiesNotSynced)) return absl::OkStatus();
  return RealSync(pages);
}

// For a moment the rows are where they come to be, and the versions where they were.
absl::Status FaultyDropVersions(VersionIndex* index, absl::Span<const VersionNumber> versions) {
  if (!IsPlanted(StoreFault::kMovedBeforeDropped)) return RealDropVersions(index, versions);
  H5M_ASSIGN_OR_RETURN(const FileRow row, index->ReadFileRow());
  std::vector<VersionRow> dropped;
  for (VersionNumber version : versions) {
    H5M_ASSIGN_OR_RETURN(dropped.emplace_back(), index->GetVersion(version));
  }
  H5M_RETURN_IF_ERROR(RealDropVersions(index, versions));
  MoveCursor cursor;
  int64_t done = 0;
  H5M_RETURN_IF_ERROR(
      RealMoveDropped(index, row.page_size_bytes, 1 << 20, &cursor, &done).status());
  H5M_RETURN_IF_ERROR(index->CommitCuts(row, dropped, std::nullopt));
  return RealDropVersions(index, versions);
}

// All at once, the newest version first: a prune that resumes at a version finds no work behind it.
absl::StatusOr<bool> FaultyMoveDropped(VersionIndex* index, uint32_t page_size_bytes,
                                       size_t row_max, MoveCursor* cursor, int64_t* versions_done) {
  if (!IsPlanted(StoreFault::kNewestFirst)) {
    return RealMoveDropped(index, page_size_bytes, row_max, cursor, versions_done);
  }
  H5M_ASSIGN_OR_RETURN(const VersionRow newest, index->Newest());
  H5M_ASSIGN_OR_RETURN(std::vector<int64_t> generations, index->Generations());
  std::reverse(generations.begin(), generations.end());
  for (int64_t generation : generations) {
    for (VersionNumber version = newest.info.version; version > 0; --version) {
      MoveCursor at;
      at.generation = generation;
      at.version = version;
      H5M_RETURN_IF_ERROR(
          RealMoveDropped(index, page_size_bytes, 1 << 20, &at, versions_done).status());
    }
  }
  return false;
}

absl::Status FaultyDropGeneration(VersionIndex* index, int64_t generation) {
  if (IsPlanted(StoreFault::kGenerationsKept)) return absl::OkStatus();
  return RealDropGeneration(index, generation);
}

absl::Status FaultyCheckNotDropped(const DroppedVersions* dropped, VersionIndex& index,
                                   VersionNumber version, uint64_t epoch) {
  if (IsPlanted(StoreFault::kReadersNotTold)) return absl::OkStatus();
  return RealCheckNotDropped(dropped, index, version, epoch);
}

}  // namespace h5mirror::store
