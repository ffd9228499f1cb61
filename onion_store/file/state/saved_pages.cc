#include "onion_store/file/state/saved_pages.h"

#include <algorithm>

namespace h5mirror::store {

const std::shared_ptr<PageSegments>& SavedPages::Segments(const FileRow& row) {
  if (segments_ == nullptr) {
    segments_ = std::make_shared<PageSegments>(files_.tree(), files_.directory(), files_.file_id(),
                                               files_.page_size_bytes(), row.pages_segment,
                                               row.pages_end_bytes, &files_.objects());
  }
  return segments_;
}

uint64_t SavedPages::SealedBytes(const FileRow& row) {
  for (sealed_until_ = std::max<uint64_t>(sealed_until_, 1); sealed_until_ < row.pages_segment;
       ++sealed_until_) {
    auto stat = files_.tree().Stat(Segments(row)->SegmentName(sealed_until_));
    if (stat.ok()) sealed_bytes_ += stat->size_bytes;  // Missing segments were removed.
  }
  return sealed_bytes_;
}

}  // namespace h5mirror::store
