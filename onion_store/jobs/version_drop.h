// Drops versions and gives their rows to older ones: steps 1 and 2 of docs/design/032-pruning.md.
//
//   moves the rows that an earlier drop left --> drops 256 versions --> moves their rows --> done
//                                                     ^-------------------------|
#ifndef H5MIRROR_ONION_STORE_JOBS_VERSION_DROP_H_
#define H5MIRROR_ONION_STORE_JOBS_VERSION_DROP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/index/dropped_versions.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// Not thread-safe: the caller has the file's work lock.
class VersionDrop {
 public:
  // `index` and `dropped` must outlive this. `versions` are there, and rise.
  VersionDrop(VersionIndex& index, DroppedVersions& dropped, uint32_t page_size_bytes,
              std::vector<VersionNumber> versions)
      : index_(index),
        dropped_(dropped),
        page_size_bytes_(page_size_bytes),
        versions_(std::move(versions)) {}

  // Does one transaction. False: there is nothing left to do.
  absl::StatusOr<bool> Step();

  int64_t versions_to_drop() const { return static_cast<int64_t>(versions_.size()); }
  // The dropped versions whose rows are moved or deleted.
  int64_t versions_done() const { return done_; }

 private:
  absl::Status Drop();
  absl::StatusOr<bool> Move();  // false: no dropped version has a row

  VersionIndex& index_;
  DroppedVersions& dropped_;
  const uint32_t page_size_bytes_;
  const std::vector<VersionNumber> versions_;
  size_t next_ = 0;  // of versions_; those before it are dropped
  int64_t done_ = 0;
  MoveCursor cursor_;
  bool is_moving_ = true;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_VERSION_DROP_H_
