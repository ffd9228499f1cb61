// The index of one file: its durable cut, its versions, the places of its pre-images. On disk:
// docs/reference/format.md, "Index".
#ifndef H5MIRROR_ONION_STORE_INDEX_VERSION_INDEX_H_
#define H5MIRROR_ONION_STORE_INDEX_VERSION_INDEX_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "base/status_macros.h"
#include "onion_store/disk/sqlite.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/shared/open_indexes.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The one row of table `file`.
struct FileRow {
  FileId file_id{};
  uint32_t page_size_bytes = 0;
  int64_t generation = 0;
  CutNumber cut_reserved = 1;  // no cut has a number at or beyond it
  CutNumber durable_cut = 0;
  uint64_t durable_size_bytes = 0;
  BarrierId durable_barrier;
  CutNumber applied_cut = 0;
  uint64_t applied_size_bytes = 0;
  VersionNumber applied_version = 0;  // newest at or before applied_cut
  bool changed = false;               // durable_cut differs from the newest version
  uint64_t changed_pages = 0;         // since the newest version
  uint64_t sent_bytes = 0;            // since the newest version
  int64_t server_time_ns = 0;         // the last one given
  Origin origin;
  uint32_t mode_bits = 0;
  LocalStat local;
  uint64_t stage_first = 1;
  uint64_t stage_last = 1;
  uint64_t stage_end_bytes = 0;
  uint64_t pages_segment = 1;
  uint64_t pages_end_bytes = 0;
  // The head's stat at applied_cut; inode 0: unknown. A size_bytes of kTakingInBytes, which no file
  // has: a change from outside is being made a version.
  FileStat head;
};
constexpr int64_t kTakingInBytes = -1;

struct VersionRow {
  VersionInfo info;
  std::optional<std::array<uint8_t, 16>> request_id;  // of a rollback
};

// A run of 2^level pages, aligned to its length, at one version.
struct PageRun {
  int level = 0;
  uint64_t page = 0;
  VersionNumber version = 0;
  uint64_t segment = 0;  // kZeros, kLost or the number of a file
  uint64_t offset = 0;   // of the record in it
  // The length of the compressed pages; 0: they are plain.
  uint32_t packed_bytes = 0;

  static constexpr uint64_t kZeros = 0;
  // The bytes are gone: the head was damaged, or changed from outside.
  static constexpr uint64_t kLost = INT64_MAX;

  uint64_t page_count() const { return uint64_t{1} << level; }
  uint64_t page_end() const { return page + page_count(); }
  bool packed() const { return packed_bytes != 0; }
  bool operator==(const PageRun&) const = default;
};

constexpr int kPageLevelMax = 8;
// The pages of a block: of the longest run. Runs are aligned, so each lies within one block.
constexpr uint64_t kBlockPages = uint64_t{1} << kPageLevelMax;

// For each page of [first, first + count), the run that holds it: that of the smallest version, and
// of these the shortest; null: none. Points into `runs`.
std::vector<const PageRun*> OwnersOf(absl::Span<const PageRun> runs, uint64_t first,
                                     uint64_t count);

// A run and its generation.
struct RunOfGeneration {
  int64_t generation = 0;
  PageRun run;
};

// A place in the order of the keys of `pages`. The default is before all of them.
struct PagesCursor {
  int64_t generation = 0;
  int level = -1;
  uint64_t page = 0;
  VersionNumber version = 0;
};

// A version and its size.
struct VersionSize {
  VersionNumber version = 0;
  int64_t generation = 0;
  uint64_t size_bytes = 0;
};

// The place at which MoveDropped() goes on.
struct MoveCursor {
  int64_t generation = 0;
  VersionNumber version = 0;
  VersionNumber retained = 0;  // the version of `limit_pages`; 0: none
  uint64_t limit_pages = 0;    // no version up to `retained` is longer
};

// A run whose record was copied.
struct MovedRun {
  int64_t generation = 0;
  PageRun from;
  uint64_t segment = 0;
  uint64_t offset = 0;
};

// How far a segment is on its way into an archive, or out of it: docs/design/050-archive.md.
enum class ArchiveState : uint8_t {
  kPutting = 1,   // the object may be there, whole or not; the segment is on the disk
  kArchived = 2,  // the object is whole and durable
  kDeleting = 3,  // no row names the segment; the object is to be deleted
};

// One row of table `archived`: the object that holds the bytes of a segment, one after the other.
struct ArchivedSegment {
  uint64_t segment = 0;
  std::string object;
  uint64_t offset = 0;  // of the segment's first byte in the object
  uint64_t length = 0;
  uint32_t crc32c = 0;  // of the segment's bytes
  ArchiveState state = ArchiveState::kPutting;
  bool operator==(const ArchivedSegment&) const = default;
};

// The one row of table `archived_copy`: the newest whole copy of the file in an archive.
struct ArchivedCopyRow {
  // Its objects' names begin so: "files/FILEID/copy-NUMBER-RANDOM"; empty: one was begun, and none
  // is whole yet.
  std::string prefix;
  std::string shows;  // what it was made of, to see whether another one would be the same
  bool operator==(const ArchivedCopyRow&) const = default;
};

// The newest version of a restored index, and where its segments are.
struct RestoredState {
  VersionNumber version = 0;
  // True: the rows of `archived` stay. False: the segments lie on the disk, and the rows go.
  bool keeps_archived = false;
  std::string copy_prefix;  // of ArchivedCopyRow; empty: it has none any more
};

// The beginning of a generation.
struct GenerationRow {
  int64_t generation = 0;
  CutNumber first_cut = 0;
  uint64_t direct_end_bytes = 0;  // one past the direct bytes of its first durable cut
};

// kRead: writes nothing, also no table or index that an older program left out.
enum class IndexUse : uint8_t { kWrite, kRead };

// Where the database of an index is. All must outlive the index.
struct IndexPlace {
  const SqliteVfs& vfs;
  EnvTree& tree;
  std::string directory;                // the file's history
  OpenIndexes* open_indexes = nullptr;  // null: it stays open
};

// Thread-safe. Each call that changes the index is one transaction, durable when it returns OK.
// After an error it has not happened. After an error of a sync it may have happened, and the file
// must be opened again.
//
// Between two calls its database may be closed, as one of many (open_indexes.h). The next call
// opens it again, with what that costs and its errors. It is opened by its name, without a lock on
// the disk. So whoever gives the name away, or lets another object open the file, calls GiveUp()
// before.
class VersionIndex final : public ClosableIndex {
 public:
  // Makes `directory`/index with the first durable cut in it, as CommitCuts() would write it: all
  // of it or none. Syncs `named`, files whose bytes the cut needs, before the index counts; at once
  // with the index, where that is faster. Durable once the names above `directory` are. On a tree
  // that keeps names in order (base/names_in_order.h) not before a later name of `directory` is.
  static absl::StatusOr<std::unique_ptr<VersionIndex>> Create(
      const IndexPlace& place, const FileRow& row, absl::Span<const VersionRow> versions,
      const std::optional<GenerationRow>& generation, absl::Span<const FileSync> named = {});
  static absl::StatusOr<std::unique_ptr<VersionIndex>> Create(
      const SqliteVfs& vfs, EnvTree& tree, const std::string& directory, const FileRow& row,
      absl::Span<const VersionRow> versions, const std::optional<GenerationRow>& generation) {
    return Create({vfs, tree, directory}, row, versions, generation);
  }
  // Errors: kNotFound there is none; kDataLoss it is damaged; kFailedPrecondition its format is
  // newer; kPermissionDenied the operating system refuses to open it.
  static absl::StatusOr<std::unique_ptr<VersionIndex>> Open(const IndexPlace& place,
                                                            IndexUse use = IndexUse::kWrite);
  static absl::StatusOr<std::unique_ptr<VersionIndex>> Open(const SqliteVfs& vfs, EnvTree& tree,
                                                            const std::string& directory,
                                                            IndexUse use = IndexUse::kWrite) {
    return Open({vfs, tree, directory}, use);
  }
  ~VersionIndex() override;

  // From now on every call fails with kUnavailable. Waits for a call that is under way.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TryClose() override ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<FileRow> ReadFileRow();
  absl::Status WriteFileRow(const FileRow& row);
  // Makes cuts durable: writes the row, new versions and a new generation.
  absl::Status CommitCuts(const FileRow& row, absl::Span<const VersionRow> versions,
                          const std::optional<GenerationRow>& generation);
  // Adds rows of pre-images. Their bytes must be durable.
  absl::Status AddPages(const FileRow& row, absl::Span<const PageRun> runs);
  // Notes that the head holds `row.applied_cut`, and that `version` (0: none) changed
  // `changed_pages` pages.
  absl::Status CommitApplied(const FileRow& row, VersionNumber version, uint64_t changed_pages);

  // The version with its tags, its source and its group's cut. kNotFound: there is none.
  absl::StatusOr<VersionRow> GetVersion(VersionNumber version);
  // The newest version, without its tags and its source; version 0: there is none.
  absl::StatusOr<VersionRow> Newest();
  // Newest first. The cost grows with the result, not with the history.
  absl::StatusOr<std::vector<VersionInfo>> List(const VersionRange& range, size_t limit);
  absl::StatusOr<int64_t> CountUpTo(VersionNumber newest);
  // The version that `back` newer ones follow; the newest at or before `time`; the one with `tag`.
  // 0: there is none.
  absl::StatusOr<VersionNumber> FindBack(int64_t back);
  absl::StatusOr<VersionNumber> FindTime(absl::Time time);
  absl::StatusOr<VersionNumber> FindTag(std::string_view tag);
  // In byte order.
  absl::StatusOr<std::vector<std::string>> TagsOf(VersionNumber version);
  // Gives `version` a tag. Returns the version that had it before; 0: none.
  // Errors: kNotFound       no such version.
  //         kAlreadyExists  another version has the tag, and `mode` is kKeep.
  absl::StatusOr<VersionNumber> SetTag(VersionNumber version, std::string_view tag, TagMode mode);
  // Takes a tag away. Returns the version that had it; 0: none, and nothing was written.
  absl::StatusOr<VersionNumber> RemoveTag(std::string_view tag);
  // Of all versions together.
  absl::StatusOr<uint64_t> CountTags();
  // The newest version of a group's cut; 0: there is none.
  absl::StatusOr<VersionNumber> FindGroupCut(const GroupCut& cut);
  // What `version` has from another file. The source of what the file began with, as a fork.
  // nullopt: none. kDataLoss: a damaged row.
  absl::StatusOr<std::optional<SourceVersion>> SourceOf(VersionNumber version);
  absl::StatusOr<std::optional<SourceVersion>> ForkedFrom();
  // The newest version below `below` that was promoted from the file of that id; 0: none.
  absl::StatusOr<VersionNumber> LastPromotedFrom(const FileId& file_id,
                                                 VersionNumber below = INT64_MAX);
  // The last comparison with the local file; nullopt: there was none.
  absl::StatusOr<std::optional<CheckInfo>> LastCheck();
  absl::Status SetLastCheck(const CheckInfo& check);
  // The version of a request or of a cut, without its tags. kNotFound: there is none.
  absl::StatusOr<VersionRow> FindRequest(const std::array<uint8_t, 16>& request_id);
  absl::StatusOr<VersionRow> FindCut(CutNumber cut);
  // The largest size of any version of a generation.
  absl::StatusOr<uint64_t> SizeMax(int64_t generation);
  absl::StatusOr<GenerationRow> GetGeneration(int64_t generation);

  // The runs at `version_min` or later that touch pages [first, end). Of the runs at one place it
  // gives the oldest. Runs of different lengths may overlap; OwnersOf() decides.
  absl::StatusOr<std::vector<PageRun>> FindPages(int64_t generation, VersionNumber version_min,
                                                 uint64_t first, uint64_t end);
  // All runs at `version_min` or later, by block and then by version; nullopt: there are more than
  // `count_max`. The cost grows with these runs, not with those of older versions.
  absl::StatusOr<std::optional<std::vector<PageRun>>> FindChanges(int64_t generation,
                                                                  VersionNumber version_min,
                                                                  size_t count_max);
  // The pages with a run at a version in [version_min, version_end), as sorted, disjoint ranges of
  // page numbers; nullopt: there are more than `count_max` runs. The cost grows with these runs.
  absl::StatusOr<std::optional<std::vector<Extent>>> FindChangedPages(int64_t generation,
                                                                      VersionNumber version_min,
                                                                      VersionNumber version_end,
                                                                      size_t count_max);
  // The first page at or after `page` and before `end` that has a run at `version_min` or later;
  // nullopt: none.
  absl::StatusOr<std::optional<uint64_t>> NextPage(int64_t generation, VersionNumber version_min,
                                                   uint64_t page, uint64_t end = UINT64_MAX);

  // ---- Dropping versions: docs/design/032-pruning.md. ----

  absl::StatusOr<bool> HasVersion(VersionNumber version);
  // Forgets `versions` and their tags. Their rows stay until MoveDropped().
  absl::Status DropVersions(absl::Span<const VersionNumber> versions);
  // Gives rows of dropped versions to older ones, or deletes them: about `row_max` rows, from
  // `cursor` on, which moves. Adds the number of versions that have no rows any more to
  // `*versions_done`. False: there are no more.
  absl::StatusOr<bool> MoveDropped(uint32_t page_size_bytes, size_t row_max, MoveCursor* cursor,
                                   int64_t* versions_done);
  // Appends the next rows, at most `row_max`; false when there are no more.
  absl::StatusOr<bool> ScanPages(size_t row_max, PagesCursor* cursor,
                                 std::vector<RunOfGeneration>* runs);
  // Moves rows to the copies of their records. The copies must be durable.
  absl::Status MoveRuns(const FileRow& row, absl::Span<const MovedRun> moved);
  // Generations older than `newest` that have a row and no version.
  absl::StatusOr<std::vector<int64_t>> UnusedGenerations(int64_t newest);
  absl::StatusOr<std::vector<int64_t>> Generations();
  absl::Status DropGeneration(int64_t generation);
  // Gives free pages of the database back, a bounded number; false when there are no more.
  absl::StatusOr<bool> Shrink();
  // Empties SQLite's log, so that the database can become smaller.
  absl::Status Checkpoint();

  // ---- Segments in an archive: docs/reference/format.md, "Table archived". ----

  // Adds or replaces the row of a segment. From the first one on older programs refuse the index.
  absl::Status PutArchived(const ArchivedSegment& segment);
  // nullopt: the segment has no object. kDataLoss: a damaged row.
  absl::StatusOr<std::optional<ArchivedSegment>> FindArchived(uint64_t segment);
  // All of them, by number.
  absl::StatusOr<std::vector<ArchivedSegment>> ListArchived();
  // Gives the rows of `segments` the state `state`, all or none.
  absl::Status SetArchiveState(absl::Span<const uint64_t> segments, ArchiveState state);
  // Deletes the row of `segment`, unless it names another object by now.
  absl::Status DropArchived(const ArchivedSegment& segment);
  // The archived segments that have a row of `pages` at `version_min` or later, of that generation;
  // generation 0: of all. By number. The cost grows with these rows.
  absl::StatusOr<std::vector<uint64_t>> ArchivedSince(int64_t generation,
                                                      VersionNumber version_min);

  // ---- Copies of the file in an archive: docs/reference/format.md, "Table archived_copy". ----

  // nullopt: none was begun.
  absl::StatusOr<std::optional<ArchivedCopyRow>> FindCopy();
  absl::Status PutCopy(const ArchivedCopyRow& row);
  absl::Status DropCopy();
  // Tells apart what a copy has besides bytes of the file: how many versions there are, and tags.
  absl::StatusOr<std::string> Shows();
  // Makes the file `name` a database with the same rows, without syncs. Others may use the index
  // meanwhile; the copy is of the moment at which it ends.
  // Errors: kAborted      a version up to `version` needs more than heads and archived segments, or
  //                       `version` is not there any more. Another copy may do better.
  //         kUnavailable  after GiveUp().
  absl::Status CopyTo(const std::string& name, VersionNumber version) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes `version` the newest one, with the head and the durable cut at it, and nothing staged.
  // kDataLoss: the index is none that a copy can have.
  absl::Status GoBackTo(const RestoredState& state);

  // ---- The cost of versions. ----

  // Appends the next versions after `after`, oldest first, at most `row_max`; false when there are
  // no more.
  absl::StatusOr<bool> ScanVersions(size_t row_max, VersionNumber after,
                                    std::vector<VersionSize>* versions);
  // The next generation after `after` that has rows of pages; 0: there is none.
  absl::StatusOr<int64_t> NextGenerationWithPages(int64_t after);
  // As ScanPages(), of one generation and level, that of `cursor`: by page and version.
  absl::StatusOr<bool> ScanLevel(size_t row_max, PagesCursor* cursor, std::vector<PageRun>* runs);
  // The same of one generation and version, that of `cursor`: by level and page.
  absl::StatusOr<bool> ScanVersionRows(size_t row_max, PagesCursor* cursor,
                                       std::vector<PageRun>* runs);

  // The versions with more than `size_bytes` bytes, oldest first; the newest version with at most
  // that many (0: none).
  absl::StatusOr<std::vector<VersionNumber>> LargerThan(uint64_t size_bytes);
  absl::StatusOr<VersionNumber> NewestUpTo(uint64_t size_bytes);

  // ---- Verifying. ----

  // The faults that SQLite finds in the database, at most 20 lines. The index is busy meanwhile.
  absl::StatusOr<std::vector<std::string>> CheckWhole();
  // kDataLoss: a row of a source is damaged; the message says which.
  absl::Status CheckSources();
  // The same of a row of a group's cut.
  absl::Status CheckGroups();
  absl::StatusOr<bool> HasRun(int64_t generation, const PageRun& run);
  // Of the versions with more than `beyond_bytes` bytes, the oldest and the newest up to `up_to`
  // that read `page` from the same place as `up_to`; 0, 0: none.
  absl::StatusOr<std::pair<VersionNumber, VersionNumber>> ReadersOf(int64_t generation,
                                                                    uint64_t page,
                                                                    VersionNumber up_to,
                                                                    uint64_t beyond_bytes);

 private:
  VersionIndex(const IndexPlace& place, std::unique_ptr<SqliteDatabase> database)
      : place_(place), database_(std::move(database)) {}

  // Every call begins with it. Errors: those of an open; kDataLoss where another file has its name
  // by now; kUnavailable after GiveUp().
  absl::Status OpenAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Empties a log that the open could not empty, before anything is appended to it.
  absl::Status SettleLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // kDataLoss: the database or its log is not the file that was open before.
  absl::Status CheckNames() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PutCuts(const FileRow& row, absl::Span<const VersionRow> versions,
                       const std::optional<GenerationRow>& generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Within a transaction: raises the format to `format`, so that older programs refuse the index.
  absl::Status NeedFormat(int64_t format) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PutFileRow(const FileRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PutVersion(const VersionRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Within a transaction: the row of `source`, what `version` has from another file.
  absl::Status PutSource(VersionNumber version, const SourceVersion& source)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same rows go with their versions, but for that of a fork.
  absl::Status DropSource(VersionNumber version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> HasSources() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<SourceVersion>> FindSource(VersionNumber version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether there is a table `archived`.
  absl::StatusOr<bool> HasArchived() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same of the cuts of groups: version_index_groups.cc.
  absl::Status PutGroup(VersionNumber version, const GroupCut& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DropGroup(VersionNumber version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> HasGroups() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<GroupCut>> FindGroup(VersionNumber version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives `version` its group's cut. The version can be read without a damaged one.
  absl::Status FillGroup(VersionInfo& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives `versions`, newest first, theirs, without `members`.
  absl::Status FillGroups(absl::Span<VersionInfo> versions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Body>
  absl::Status InTransaction(Body body) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<VersionNumber> TimeLocked(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<VersionNumber> TagLocked(std::string_view tag)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives `versions`, newest first, their tags.
  absl::Status FillTags(absl::Span<VersionInfo> versions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends the runs of one level.
  absl::Status FindRuns(int64_t generation, int level, VersionNumber version_min, uint64_t first,
                        uint64_t end, std::vector<PageRun>* runs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::optional<PageRun>> SeekRun(int64_t generation, int level, uint64_t page,
                                                 VersionNumber version_min, uint64_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: rows of `version` itself hold all pages of the run.
  absl::StatusOr<bool> Holds(int64_t generation, VersionNumber version, int level, uint64_t page)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> HasRow(int64_t generation, VersionNumber version, int level, uint64_t page)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> HasVersionLocked(VersionNumber version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes `cursor->retained` the newest version before `cursor->version`, if it is of its
  // generation.
  absl::Status FindRetained(uint32_t page_size_bytes, MoveCursor* cursor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MoveRow(const MoveCursor& cursor, const PageRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const IndexPlace place_;
  absl::Mutex mutex_;
  // Null: it was closed, or given up.
  std::unique_ptr<SqliteDatabase> database_ ABSL_GUARDED_BY(mutex_);
  // True: table `source` is known not to be there.
  bool lacks_sources_ ABSL_GUARDED_BY(mutex_) = false;
  // Likewise tables `group_cut` and `archived`.
  bool lacks_groups_ ABSL_GUARDED_BY(mutex_) = false;
  bool lacks_archived_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t inode_ ABSL_GUARDED_BY(mutex_) = 0;      // of the database's file
  uint64_t log_inode_ ABSL_GUARDED_BY(mutex_) = 0;  // of the file of its log
  // True: the last commit failed, and may be in the log. This connection writes over it; another
  // one would take it for a commit. So it stays open.
  bool is_unsure_ ABSL_GUARDED_BY(mutex_) = false;
  // True: an earlier life's log could not be moved to the database, as the disk was full.
  bool owes_log_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_given_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_copied_ ABSL_GUARDED_BY(mutex_) = false;  // CopyTo() needs the connection
};

template <typename Body>
absl::Status VersionIndex::InTransaction(Body body) {
  absl::MutexLock lock(&mutex_);
  H5M_RETURN_IF_ERROR(OpenAgain());
  H5M_RETURN_IF_ERROR(SettleLog());
  H5M_RETURN_IF_ERROR(database_->Execute("BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) {
    status = database_->Execute("COMMIT");
    is_unsure_ = !status.ok();
  }
  if (!status.ok()) database_->Execute("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_INDEX_VERSION_INDEX_H_
