// The redo log of one file: overwrites that are not in the head yet. On disk:
// docs/reference/format.md, "Stage records".
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

// Where staged bytes lie: segment number and offset in one word, as there may be many.
using StageLocation = uint64_t;
constexpr int kStageOffsetBits = 40;
constexpr StageLocation MakeLocation(uint64_t segment, uint64_t offset) {
  return segment << kStageOffsetBits | offset;
}
constexpr uint64_t SegmentOf(StageLocation at) { return at >> kStageOffsetBits; }
constexpr uint64_t OffsetOf(StageLocation at) {
  return at & ((uint64_t{1} << kStageOffsetBits) - 1);
}

// Bytes that a rollback brings back stay where they are, in pages-NNNNNN (page_segments.h).
constexpr uint64_t kPagesBit = uint64_t{1} << 23;
constexpr StageLocation MakePagesLocation(uint64_t pages_segment, uint64_t offset) {
  return MakeLocation(kPagesBit | pages_segment, offset);
}
constexpr bool IsInPages(StageLocation at) { return (SegmentOf(at) & kPagesBit) != 0; }
constexpr uint64_t PagesSegmentOf(StageLocation at) { return SegmentOf(at) & ~kPagesBit; }

// The largest run of pages that is saved as one: 256 pages of 64 KiB.
constexpr uint64_t kPageRunBytesMax = uint64_t{16} << 20;

// One file of the log. Whoever needs its bytes keeps it; its name may be gone by then.
struct StageSegment {
  uint64_t number = 0;
  std::string name;  // in the tree, for messages
  std::unique_ptr<EnvFile> file;
  std::atomic<bool> dirty{false};    // written since the last sync
  std::atomic<int> reader_count{0};  // it is not used again while somebody reads it
};
using StageSegments = std::vector<std::shared_ptr<StageSegment>>;

// Reads staged bytes. kInternal: the location is in none of `segments`.
absl::Status ReadStaged(const StageSegments& segments, StageLocation at, absl::Span<char> out);

// Bytes of an older version that come back.
struct Revert {
  Extent extent;
  StageLocation at = 0;  // IsInPages()
  uint32_t crc = 0;      // crc32c of the bytes
  CutNumber after = 0;   // the newest cut before; set by Replay()
};

// Where a log ends.
struct StageEnd {
  uint64_t segment = 0;
  uint64_t bytes = 0;
};

// What Replay() finds, in the order written.
struct StageVisitor {
  std::function<absl::Status(Extent, StageLocation)> on_write;
  // Its bytes are not checked yet: they are not the log's.
  std::function<absl::Status(const Revert&)> on_revert;
  std::function<absl::Status(uint64_t size_bytes)> on_truncate;
  std::function<absl::Status(CutNumber, uint64_t size_bytes, absl::Span<const Extent> direct,
                             StageEnd end)>
      on_cut;
};

// Not thread-safe: the file's lock guards it. Segments are thread-safe to read and sync.
class StageLog {
 public:
  // `directory` is the file's history, `tree` must outlive the log.
  StageLog(EnvTree& tree, std::string directory, FileId file_id)
      : tree_(tree), directory_(std::move(directory)), file_id_(file_id) {}

  // Takes up the segments first..end.segment of an earlier run and cuts off what lies beyond
  // `end`. kDataLoss: a segment is missing or too short.
  absl::Status Open(uint64_t first, StageEnd end);
  // The same for who only looks: nothing is cut off, and only Replay() may follow.
  absl::Status OpenToCheck(uint64_t first, StageEnd end);
  // Starts empty, at a segment number that was never used.
  void StartAt(uint64_t number) { number_ = number; }
  // Checks and visits all records. kDataLoss names segment and offset.
  absl::Status Replay(const StageVisitor& visitor);

  // Appends one record; the bytes of the extents, which `pieces` hold, lie one after the other
  // from the location that is returned. `cut` is the newest before.
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

  // Whether a segment was made since the last call: its name is not durable yet.
  bool TakeNamesChanged() { return std::exchange(names_changed_, false); }

  // Forgets what was appended since `end`, in the same segment.
  absl::Status RewindTo(StageEnd end);
  // Later records go to a new segment.
  void Rotate();
  // Removes segments before `first`. Their holders may still read them.
  absl::Status RemoveBefore(uint64_t first);
  // Forgets everything. The caller has seen to it that the index does not need it.
  absl::Status Reset();

 private:
  // `crcs`: one of each extent's bytes.
  absl::Status Append(uint32_t kind, int64_t generation, CutNumber cut, uint64_t size_bytes,
                      absl::Span<const Extent> extents, absl::Span<const uint32_t> crcs,
                      absl::Span<const std::string_view> pieces, StageLocation* data_at);
  absl::Status NeedSegment();
  std::string SegmentName(uint64_t number) const;

  EnvTree& tree_;
  const std::string directory_;
  const FileId file_id_;
  StageSegments segments_;  // the last one is `number_`, once a record was written
  uint64_t number_ = 1;
  uint64_t end_bytes_ = 0;
  bool names_changed_ = false;
  bool torn_ = false;  // a write failed: part of it may lie behind end_bytes_
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STAGE_STAGE_LOG_H_
