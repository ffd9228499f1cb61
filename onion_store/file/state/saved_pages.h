// The segments of one file's pre-images (page_segments.h): their disk space, and the pins that keep
// them on the disk.
//
//   pages-1 ... pages-(N-1)   sealed: their sizes change only by a prune
//   pages-N                   the newest; its end is in the file's row
#ifndef H5MIRROR_ONION_STORE_FILE_STATE_SAVED_PAGES_H_
#define H5MIRROR_ONION_STORE_FILE_STATE_SAVED_PAGES_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "onion_store/index/version_index.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

// Whether the newest version has pre-images: pages of it that were overwritten in the head since.
enum class NewestRows : uint8_t { kMaybe, kNone };

// Not thread-safe: the file's state lock guards it. `row` is always the file's row of now.
class SavedPages {
 public:
  // `files` must outlive this.
  explicit SavedPages(const HistoryFiles& files) : files_(files) {}

  // At the first call begins at the end that `row` names. Never null.
  const std::shared_ptr<PageSegments>& Segments(const FileRow& row);
  // The bytes of all sealed segments. Counts only segments that were not counted yet.
  uint64_t SealedBytes(const FileRow& row);
  // A segment was removed: the next call counts all of them again.
  void CountAnew() { sealed_bytes_ = sealed_until_ = 0; }

  NewestRows newest_rows() const { return newest_rows_; }
  void SetNewestRows(NewestRows rows) { newest_rows_ = rows; }

  // A layer holds this if it has bytes in segments that perhaps no row names. While HasReverts(),
  // no segment is removed.
  const std::shared_ptr<const int>& revert_pin() const { return revert_pin_; }
  bool HasReverts() const { return revert_pin_.use_count() > 1; }

  // A call that reads saved pages under the work lock holds this. While IsKeptOnDisk(), no segment
  // goes from the disk into the archive: else the call would wait for a network.
  const std::shared_ptr<const int>& disk_pin() const { return disk_pin_; }
  bool IsKeptOnDisk() const { return HasReverts() || disk_pin_.use_count() > 1; }

  // One prune at a time, and one archive job. False: one is under way.
  bool BeginPrune() { return std::exchange(prune_, Job::kUnderWay) == Job::kNone; }
  void EndPrune() { prune_ = Job::kNone; }
  bool BeginArchive() { return std::exchange(archive_, Job::kUnderWay) == Job::kNone; }
  void EndArchive() { archive_ = Job::kNone; }

 private:
  enum class Job : uint8_t { kNone, kUnderWay };

  const HistoryFiles& files_;
  std::shared_ptr<PageSegments> segments_;
  uint64_t sealed_bytes_ = 0;  // of the segments before `sealed_until_`
  uint64_t sealed_until_ = 0;
  NewestRows newest_rows_ = NewestRows::kMaybe;
  const std::shared_ptr<const int> revert_pin_ = std::make_shared<const int>(0);
  const std::shared_ptr<const int> disk_pin_ = std::make_shared<const int>(0);
  Job prune_ = Job::kNone;
  Job archive_ = Job::kNone;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_STATE_SAVED_PAGES_H_
