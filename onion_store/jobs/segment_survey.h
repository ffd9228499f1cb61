// Finds the segments of saved pages that are worth freeing: docs/design/032-pruning.md, step 4.
#ifndef H5MIRROR_ONION_STORE_JOBS_SEGMENT_SURVEY_H_
#define H5MIRROR_ONION_STORE_JOBS_SEGMENT_SURVEY_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

struct SegmentSpace {
  uint64_t number = 0;
  uint64_t size_bytes = 0;  // of the disk
  uint64_t live_bytes = 0;  // of records that rows name
  uint64_t live_rows = 0;
};

// Not thread-safe: the caller has the file's work lock.
class SegmentSurvey {
 public:
  // All must outlive this.
  SegmentSurvey(const HistoryFiles& files, VersionIndex& index, const PageSegments& pages)
      : files_(files), index_(index), pages_(pages) {}

  // Counts the live bytes of some thousand rows. False: these were the last.
  absl::StatusOr<bool> Step();
  // Whether a row names the segment. Only once Step() has returned false.
  bool HasRows(uint64_t number) const { return live_.contains(number); }
  // The segments that are dead enough, the emptiest first. Only once Step() has returned false.
  absl::StatusOr<std::vector<SegmentSpace>> DeadEnough() const;

 private:
  const HistoryFiles& files_;
  VersionIndex& index_;
  const PageSegments& pages_;
  PagesCursor cursor_;
  std::map<uint64_t, SegmentSpace> live_;  // those with rows, without their sizes
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_SEGMENT_SURVEY_H_
