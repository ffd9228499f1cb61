// The segments of one file's pre-images (page_segments.h), and what they take of the disk.
//
//   pages-1 ... pages-(N-1)   sealed: their sizes change only by a prune
//   pages-N                   the newest; its end is in the file's row
#ifndef H5MIRROR_ONION_STORE_FILE_STATE_SAVED_PAGES_H_
#define H5MIRROR_ONION_STORE_FILE_STATE_SAVED_PAGES_H_

#include <cstdint>
#include <memory>

#include "onion_store/index/version_index.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/shared/history_files.h"

namespace h5mirror::store {

// Not thread-safe: the file's state lock guards it. `row` is always the file's row of now.
class SavedPages {
 public:
  // `files` must outlive this.
  explicit SavedPages(const HistoryFiles& files) : files_(files) {}

  // Begins at the end that `row` names, the first time. Never null.
  const std::shared_ptr<PageSegments>& Segments(const FileRow& row);
  // Counts those of the sealed segments that were not counted yet.
  uint64_t SealedBytes(const FileRow& row);
  // Counts all of them anew the next time: one was removed.
  void CountAnew() { sealed_bytes_ = sealed_until_ = 0; }

 private:
  const HistoryFiles& files_;
  std::shared_ptr<PageSegments> segments_;
  uint64_t sealed_bytes_ = 0;  // of the segments before `sealed_until_`
  uint64_t sealed_until_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_STATE_SAVED_PAGES_H_
