// Deletes the objects of archived segments that no row names any more:
// docs/design/050-archive.md, "Pruning".
#ifndef H5MIRROR_ONION_STORE_JOBS_DEAD_OBJECTS_H_
#define H5MIRROR_ONION_STORE_JOBS_DEAD_OBJECTS_H_

#include <deque>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "onion_store/index/dropped_versions.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

// Not thread-safe.
class DeadObjects {
 public:
  // All must outlive this.
  DeadObjects(const HistoryFiles& files, VersionIndex& index) : files_(files), index_(index) {}

  // Notes durably which objects go: objects of segments without a row that are not on the disk, and
  // objects that an earlier job left. The change that dropped their rows is durable. The caller has
  // the file's work lock. Errors: those of the index.
  absl::Status Mark(PageSegments& pages, DroppedVersions& dropped,
                    absl::FunctionRef<bool(uint64_t segment)> has_rows);
  // Adds an object to delete. Its row has the state kDeleting.
  void Add(ArchivedSegment segment) { dead_.push_back(std::move(segment)); }

  // Deletes one object, then its row, if that names no other object by now. Waits for the archive:
  // the caller holds no lock. False: no object is left, or the archive does not answer. Errors:
  // those of the index.
  absl::StatusOr<bool> Step();

  int64_t deleted_count() const { return deleted_count_; }
  // Why some objects are left for the next job; empty: none are.
  const std::string& left() const { return left_; }

 private:
  const HistoryFiles& files_;
  VersionIndex& index_;
  std::deque<ArchivedSegment> dead_;
  int64_t deleted_count_ = 0;
  std::string left_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_DEAD_OBJECTS_H_
