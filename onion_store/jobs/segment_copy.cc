#include "onion_store/jobs/segment_copy.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/history_sizes.h"

namespace h5mirror::store {
namespace {

constexpr size_t kScanRows = 4096;
constexpr uint64_t kCopyBytes = 8 << 20;  // copied by one step
constexpr size_t kRowsMin = 64, kRowsMax = 1 << 18;

}  // namespace

absl::StatusOr<bool> SegmentCopy::Step() {
  if (is_collecting_) {
    H5M_RETURN_IF_ERROR(Collect());
  } else if (!group_.empty()) {
    H5M_RETURN_IF_ERROR(GiveBackFirst());
  } else if (!todo_.empty()) {
    TakeGroup();
  }
  return !group_.empty() || !todo_.empty();
}

// Takes the next segments whose rows fit into memory together; at least one.
void SegmentCopy::TakeGroup() {
  rows_max_ = std::clamp<size_t>(file_.files().budget().room_bytes() / sizeof(RunOfGeneration),
                                 kRowsMin, kRowsMax);
  size_t rows = 0;
  while (!todo_.empty() && (group_.empty() || rows + todo_.front().live_rows <= rows_max_)) {
    const SegmentSpace space = todo_.front();
    todo_.pop_front();
    rows += space.live_rows;
    group_.push_back(space.number);
    by_number_[space.number].space = space;
  }
  cursor_ = PagesCursor();
  is_collecting_ = true;
}

absl::Status SegmentCopy::Collect() {
  std::vector<RunOfGeneration> found;
  H5M_ASSIGN_OR_RETURN(is_collecting_, index_.ScanPages(kScanRows, &cursor_, &found));
  for (const RunOfGeneration& row : found) {
    const auto of_group = by_number_.find(row.run.segment);
    if (of_group == by_number_.end()) continue;
    Pending& segment = of_group->second;
    segment.has_more_rows |= segment.rows.size() >= rows_max_;
    if (!segment.has_more_rows) segment.rows.push_back(row);
  }
  size_t rows = 0;
  for (const auto& [number, segment] : by_number_) rows += segment.rows.capacity();
  charge_.Set(static_cast<int64_t>(rows * sizeof(RunOfGeneration) + kCopyBytes));
  if (is_collecting_) return absl::OkStatus();
  for (auto& [number, segment] : by_number_) {  // Sorted, so that each segment is read in order.
    std::sort(segment.rows.begin(), segment.rows.end(),
              [](const RunOfGeneration& a, const RunOfGeneration& b) {
                return a.run.offset > b.run.offset;
              });
  }
  return absl::OkStatus();
}

// Copies some records of the first segment of the group, or removes the segment if none is left in
// it.
absl::Status SegmentCopy::GiveBackFirst() {
  const uint64_t number = group_.front();
  Pending& segment = by_number_[number];
  if (segment.rows.empty()) {
    if (segment.has_more_rows) {
      todo_.push_front(segment.space);  // for its other rows
    } else {
      H5M_RETURN_IF_ERROR(Remove(segment.space));
    }
    DoneWithFirst();
    return absl::OkStatus();
  }
  if (number != copying_) {
    H5M_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytesOf(file_.files().tree()));
    if (segment.space.live_bytes > RoomToCopy(free_bytes)) {
      LeaveFirst(StrCat("to write ", pages_.SegmentName(number), " anew takes ",
                        segment.space.live_bytes, " bytes for a while, and ", free_bytes,
                        " are free"));
      return absl::OkStatus();
    }
    copying_ = number;
  }
  absl::Status copied = CopySome(&segment.rows);
  // No record is lost and no space freed: the segment stays as it is.
  if (!absl::IsDataLoss(copied) && !absl::IsResourceExhausted(copied)) return copied;
  LeaveFirst(std::string(copied.message()));
  return absl::OkStatus();
}

void SegmentCopy::LeaveFirst(std::string why) {
  left_ = std::move(why);
  DoneWithFirst();
}

void SegmentCopy::DoneWithFirst() {
  by_number_.erase(group_.front());
  group_.pop_front();
  if (group_.empty()) charge_.Set(0);
}

absl::Status SegmentCopy::CopySome(std::vector<RunOfGeneration>* rows) {
  std::vector<MovedRun> moved;
  uint64_t bytes = 0;
  for (auto row = rows->rbegin(); row != rows->rend() && bytes < kCopyBytes; ++row) {
    H5M_ASSIGN_OR_RETURN(const PageRun to, pages_.Copy(row->run, row->generation));
    moved.push_back({row->generation, row->run, to.segment, to.offset});
    bytes += pages_.RecordBytes(to);
  }
  H5M_RETURN_IF_ERROR(pages_.Sync());
  FileRow row = file_.row();
  row.pages_segment = pages_.segment();
  row.pages_end_bytes = pages_.end_bytes();
  H5M_RETURN_IF_ERROR(index_.MoveRuns(row, moved));
  rows->resize(rows->size() - moved.size());
  freed_bytes_ -= static_cast<int64_t>(bytes);
  file_.SetRow(row);
  return absl::OkStatus();
}

absl::Status SegmentCopy::Remove(const SegmentSpace& space) {
  if (file_.HasReverts()) {
    left_ = "a rollback is not in the head yet, or still read: prune again later";
    return absl::OkStatus();
  }
  // If a reader still sees the old epoch, and then no segment, the damage is real.
  file_.dropped_versions().Advance();
  H5M_RETURN_IF_ERROR(pages_.Remove(space.number));
  freed_bytes_ += static_cast<int64_t>(space.size_bytes);
  removed_.insert(space.number);
  file_.SegmentRemoved();
  return absl::OkStatus();
}

}  // namespace h5mirror::store
