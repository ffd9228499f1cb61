// The stage: the redo log of one file. A write to bytes that a cut or a version may still show goes
// here first, and into the head later. In the head itself, a crash could stop it half-way. Bytes
// that no reader can ask for yet need no stage: they go straight to their place ("direct").
//
// FORMAT
//
// A stage is a row of files, stage-NNNNNN in the file's history: the segments. A segment is a
// sequence of records and nothing else. Each record goes out in one WriteAt():
//
//   header   64 bytes   magic, crc32c, kind, entries, file id, generation, cut, size, data bytes
//   table    24 bytes   for each extent: offset, length, crc32c of its bytes
//   data                as the kind says
//
//   kind      table                        data                            appended by
//   write     the extents written          their bytes, one after another  AppendWrite()
//   truncate  empty                        none; the header has the size   AppendTruncate()
//   cut       the extents written direct   none; the header has the size   AppendCut()
//   revert    the extents brought back     of each, its place in pages-N   AppendReverts()
//
// The header's crc32c covers the rest of the header, and the table. docs/reference/format.md,
// "Stage records", has every offset and an example in hex.
//
// A record belongs to the first cut record after it. The log goes on to a new segment behind a cut
// record that ends beyond 64 MiB, in Reset(), and before a record that would end beyond 64 GiB. So
// one cut may lie in several segments. The first cut of a generation has no record, as all of its
// bytes are direct.
//
// ORDER OF SYNCS
//
// The log never syncs. It marks a segment dirty after each write to it. A cut goes this way:
//
//   1. Append...()                          the cut is visible; nothing is synced
//   2. SyncBatch()       file_durable.cc    fdatasync of head and dirty segments, and fsync of the
//                                           directory where TakeNamesChanged() says so
//   3. CommitBatch()     file_durable.cc    one transaction of the index: durable cut, stage's end
//   4. Apply()           file_apply.cc      staged bytes go into the head; fdatasync head and sums
//   5. FinishApply()     file_apply.cc      one transaction of the index: applied cut, stage_first
//   6. RemoveBefore(), Reset()              the stage shrinks, or is written over from its start
//
// 2 stands before 3: the index must never name bytes that a power loss can take. 4 and 5 stand
// before 6: until head and index are synced, the stage is the only other copy of the bytes.
//
// INVARIANTS
//
// - The index alone says what counts: the records from segment stage_first, offset 0, to segment
//   stage_last, offset stage_end_bytes, and these only while durable_cut > applied_cut.
// - Bytes behind that end were never durable. Open() cuts them off, so a torn record there is no
//   error. A bad record before that end is damage: kDataLoss.
// - The file may reach beyond end(): Reset() leaves old bytes, and EnvFile::GrowAhead() zeros. A
//   segment that is left for the next one is cut off at its end first, as its size is its end.
// - A failed write may leave a part of a record behind end(). The next Append...() cuts it off
//   first, also where it goes on to a new segment. Else it could stay behind the last record of a
//   full segment, and Replay() would meet it.
// - Bytes that a reader may still want do not change. RemoveBefore() takes the name of a segment
//   away; a reader has the file open. Reset() uses a segment again only while its reader_count is
//   0.
// - Replay() compares the checksums of headers, tables and written bytes. ReadStaged() compares
//   none: as a rule an apply follows its cut within milliseconds.
#ifndef H5MIRROR_ONION_STORE_STAGE_STAGE_LOG_H_
#define H5MIRROR_ONION_STORE_STAGE_STAGE_LOG_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The place of staged bytes: segment number and offset in one word, as there may be many.
using StageLocation = uint64_t;
constexpr int kStageOffsetBits = 40;
constexpr StageLocation MakeLocation(uint64_t segment, uint64_t offset) {
  return segment << kStageOffsetBits | offset;
}
constexpr uint64_t SegmentOf(StageLocation at) { return at >> kStageOffsetBits; }
constexpr uint64_t OffsetOf(StageLocation at) {
  return at & ((uint64_t{1} << kStageOffsetBits) - 1);
}

// The place of bytes that a rollback brings back: they stay in pages-NNNNNN (page_segments.h).
constexpr uint64_t kPagesBit = uint64_t{1} << 23;
constexpr StageLocation MakePagesLocation(uint64_t pages_segment, uint64_t offset) {
  return MakeLocation(kPagesBit | pages_segment, offset);
}
constexpr bool IsInPages(StageLocation at) { return (SegmentOf(at) & kPagesBit) != 0; }
constexpr uint64_t PagesSegmentOf(StageLocation at) { return SegmentOf(at) & ~kPagesBit; }

// The largest run of pages that is saved as one: 256 pages of 64 KiB.
constexpr uint64_t kPageRunBytesMax = uint64_t{16} << 20;

// One file of the log. A holder of this can read the bytes, also when the file's name is gone.
struct StageSegment {
  uint64_t number = 0;
  std::string name;  // relative to the root, as when it was opened
  std::unique_ptr<EnvFile> file;
  std::atomic<bool> dirty{false};    // written since the last sync
  std::atomic<int> reader_count{0};  // above 0: Reset() must not use the file again
};
using StageSegments = std::vector<std::shared_ptr<StageSegment>>;

// Reads staged bytes. kInternal: the location is in none of `segments`.
absl::Status ReadStaged(const StageSegments& segments, StageLocation at, absl::Span<char> out);

// A range whose bytes become those of an older version again.
struct Revert {
  Extent extent;
  StageLocation at = 0;  // IsInPages()
  uint32_t crc = 0;      // crc32c of the bytes
  CutNumber after = 0;   // the newest cut before; set by Replay()
};

// The end of a log: one past its last record.
struct StageEnd {
  uint64_t segment = 0;
  uint64_t bytes = 0;
};

// Replay() calls these in the order of the records. An error ends the replay.
struct StageVisitor {
  std::function<absl::Status(Extent, StageLocation)> on_write;
  // The bytes lie in pages-NNNNNN. Replay() does not compare their checksum.
  std::function<absl::Status(const Revert&)> on_revert;
  std::function<absl::Status(uint64_t size_bytes)> on_truncate;
  std::function<absl::Status(CutNumber, uint64_t size_bytes, absl::Span<const Extent> direct,
                             StageEnd end)>
      on_cut;
};

// Not thread-safe: the file's lock guards it. Segments are thread-safe to read and sync.
class StageLog {
 public:
  // Each segment is open while it counts: 10 TB that one cut overwrites take 160 of them.
  static constexpr uint64_t kSegmentBytes = uint64_t{64} << 30;
  // What a stage keeps of its file while it is written.
  static constexpr uint64_t kKeptBytes = uint64_t{1} << 20;

  // `directory` is the file's history. `tree` must outlive the log. A record that would end beyond
  // `segment_bytes` begins a new segment.
  StageLog(EnvTree& tree, std::string directory, FileId file_id,
           uint64_t segment_bytes = kSegmentBytes)
      : tree_(tree),
        directory_(std::move(directory)),
        file_id_(file_id),
        segment_bytes_(segment_bytes) {}

  // Opens the segments first..end.segment, both included, of an earlier run. Cuts off the bytes
  // behind `end`. kDataLoss: a segment is missing, or ends before `end`.
  absl::Status Open(uint64_t first, StageEnd end);
  // As Open(), but changes nothing on the disk. Only Replay() may follow.
  absl::Status OpenToCheck(uint64_t first, StageEnd end);
  // Starts empty, at a segment number that was never used.
  void StartAt(uint64_t number) { number_ = number; }
  // Checks and visits all records. kDataLoss: a bad record; the message names segment and offset.
  absl::Status Replay(const StageVisitor& visitor);

  // Appends one record. `pieces`, one after the other, are the bytes of `extents`; they lie without
  // a gap from the location that is returned. `cut` is the newest cut so far.
  // Errors: kResourceExhausted one record has 512 GiB; those of EnvFile::WriteAt().
  absl::StatusOr<StageLocation> AppendWrite(int64_t generation, CutNumber cut,
                                            absl::Span<const Extent> extents,
                                            absl::Span<const std::string_view> pieces);
  absl::Status AppendReverts(int64_t generation, CutNumber cut, absl::Span<const Revert> reverts);
  absl::Status AppendTruncate(int64_t generation, CutNumber cut, uint64_t size_bytes);
  absl::Status AppendCut(int64_t generation, CutNumber cut, uint64_t size_bytes,
                         absl::Span<const Extent> direct);

  StageEnd end() const { return {number_, end_bytes_}; }
  bool empty() const { return end_bytes_ == 0 && segments_.size() <= 1; }
  uint64_t byte_count() const;
  const StageSegments& segments() const { return segments_; }

  // True: a segment was made since the last call, and its name is not durable yet.
  bool TakeNamesChanged() { return std::exchange(names_changed_, false); }

  // Takes back the records behind `end`, and the segments that were begun for them. Nobody reads
  // them: no cut has them.
  absl::Status RewindTo(StageEnd end);
  // Later records go to a new segment. After an error they go on in this one.
  absl::Status Rotate();
  // Removes the segments before `first`. Holders of a segment may still read it.
  absl::Status RemoveBefore(uint64_t first);
  // Empties the log. The caller has made sure that the index needs none of it. A file of up to
  // `keep_bytes` stays as it is, and the next records are written over its bytes.
  absl::Status Reset(uint64_t keep_bytes);

 private:
  // `crcs`: one for each extent; empty: 0 for all.
  absl::Status Append(uint32_t kind, int64_t generation, CutNumber cut, uint64_t size_bytes,
                      absl::Span<const Extent> extents, absl::Span<const uint32_t> crcs,
                      absl::Span<const std::string_view> pieces, StageLocation* data_at);
  absl::Status NeedSegment();
  // The next record has `bytes` bytes: goes on to a new segment where this one has no room for it.
  absl::Status MakeRoom(uint64_t bytes);
  void GrowAhead(uint64_t bytes);
  // Cuts the segment off behind its last record.
  absl::Status CutOff();
  void GoOn();
  std::string SegmentName(uint64_t number) const;

  EnvTree& tree_;
  const std::string directory_;
  const FileId file_id_;
  const uint64_t segment_bytes_;
  StageSegments segments_;  // the last one is `number_`, once a record was written
  uint64_t number_ = 1;
  uint64_t end_bytes_ = 0;
  // What the file may reach to: it may have been given bytes in advance, or hold those of records
  // that no longer count.
  uint64_t file_end_bytes_ = 0;
  bool names_changed_ = false;
  bool torn_ = false;  // a write failed: part of it may lie behind end_bytes_
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STAGE_STAGE_LOG_H_
