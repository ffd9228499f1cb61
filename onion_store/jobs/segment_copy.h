// Frees segments of saved pages: copies their live records elsewhere, then removes them.
// docs/design/032-pruning.md, "Copying a segment".
//
//   collects the rows of a group --> copies or removes its first segment --> ... --> the next group
//
// A group is as many segments as have rows that fit into memory together. If the rows of one
// segment do not fit, it is copied in parts.
#ifndef H5MIRROR_ONION_STORE_JOBS_SEGMENT_COPY_H_
#define H5MIRROR_ONION_STORE_JOBS_SEGMENT_COPY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/jobs/job_sources.h"
#include "onion_store/jobs/segment_survey.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

// Not thread-safe: the caller has the file's work lock.
class SegmentCopy {
 public:
  // All must outlive this.
  SegmentCopy(PruneSource& file, VersionIndex& index, PageSegments& pages)
      : file_(file), index_(index), pages_(pages), charge_(file.files().budget()) {}

  // `segments`: those to free, in this order. Nothing is appended to them any more.
  void Start(std::vector<SegmentSpace> segments) { todo_ = {segments.begin(), segments.end()}; }
  // Does some milliseconds of work. False: there is nothing left to do.
  absl::StatusOr<bool> Step();

  // The bytes that the disk has gained. Negative while both copies and originals exist.
  int64_t freed_bytes() const { return freed_bytes_; }
  // Whether a segment was freed: no row names it any more.
  bool HasRemoved(uint64_t number) const { return removed_.contains(number); }
  // Why the last remaining segment stays as it is; empty: all were freed.
  const std::string& left() const { return left_; }

 private:
  struct Pending {
    SegmentSpace space;
    std::vector<RunOfGeneration> rows;  // the next one to copy last
    bool has_more_rows = false;         // than `rows` holds
  };

  void TakeGroup();
  absl::Status Collect();
  absl::Status GiveBackFirst();
  void LeaveFirst(std::string why);
  void DoneWithFirst();
  absl::Status CopySome(std::vector<RunOfGeneration>* rows);
  absl::Status Remove(const SegmentSpace& space);

  PruneSource& file_;
  VersionIndex& index_;
  PageSegments& pages_;
  std::deque<SegmentSpace> todo_;          // without those of the group
  std::deque<uint64_t> group_;             // numbers, in order
  std::map<uint64_t, Pending> by_number_;  // of the group
  size_t rows_max_ = 0;                    // of the group, in memory
  PagesCursor cursor_;
  bool is_collecting_ = false;
  uint64_t copying_ = 0;  // the segment for which room was found; no segment has number 0
  int64_t freed_bytes_ = 0;
  std::set<uint64_t> removed_;
  std::string left_;
  MemoryCharge charge_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_SEGMENT_COPY_H_
