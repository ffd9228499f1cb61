#include "onion_store/jobs/segment_survey.h"

#include <algorithm>

#include "base/status_macros.h"
#include "onion_store/history_names.h"
#include "onion_store/history_sizes.h"

namespace h5mirror::store {
namespace {

constexpr size_t kScanRows = 4096;

}  // namespace

absl::StatusOr<bool> SegmentSurvey::Step() {
  std::vector<RunOfGeneration> rows;
  H5M_ASSIGN_OR_RETURN(const bool more, index_.ScanPages(kScanRows, &cursor_, &rows));
  for (const RunOfGeneration& row : rows) {
    const uint64_t bytes = pages_.DiskBytes(row.run);
    if (bytes == 0) continue;
    SegmentSpace& segment = live_[row.run.segment];
    segment.live_bytes += bytes;
    ++segment.live_rows;
  }
  return more;
}

absl::StatusOr<std::vector<SegmentSpace>> SegmentSurvey::DeadEnough() const {
  H5M_ASSIGN_OR_RETURN(const auto entries, files_.tree().List(files_.directory()));
  std::vector<SegmentSpace> dead;
  for (const DirectoryEntry& entry : entries) {
    const auto number = NumberAfter(entry.name, "pages-");
    if (!number) continue;
    H5M_ASSIGN_OR_RETURN(const FileStat stat, files_.tree().Stat(files_.HistoryName(entry.name)));
    const auto live = live_.find(*number);
    SegmentSpace segment = live == live_.end() ? SegmentSpace() : live->second;
    segment.number = *number;
    segment.size_bytes = stat.size_bytes;
    if (IsDeadEnough(segment.size_bytes, segment.live_bytes)) dead.push_back(segment);
  }
  std::sort(dead.begin(), dead.end(), [](const SegmentSpace& a, const SegmentSpace& b) {
    return std::pair(a.live_bytes, a.number) < std::pair(b.live_bytes, b.number);
  });
  return dead;
}

}  // namespace h5mirror::store
