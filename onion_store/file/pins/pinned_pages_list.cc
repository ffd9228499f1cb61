#include "onion_store/file/pins/pinned_pages_list.h"

namespace h5mirror::store {

uint64_t PinnedPagesList::Start(int64_t generation, uint32_t page_size_bytes) {
  absl::MutexLock lock(&mutex_);
  const bool is_fresh =
      !pages_.empty() && pages_.back()->generation() == generation && pages_.back()->empty();
  if (!is_fresh) {
    pages_.push_back(
        std::make_shared<PinnedPages>(budget_, tree_, directory_, generation, page_size_bytes));
  }
  return first_ + pages_.size() - 1;
}

std::shared_ptr<PinnedPages> PinnedPagesList::NewestOf(int64_t generation) const {
  absl::MutexLock lock(&mutex_);
  for (auto pages = pages_.rbegin(); pages != pages_.rend(); ++pages) {
    if ((*pages)->generation() == generation) return *pages;
  }
  return nullptr;
}

std::vector<std::shared_ptr<PinnedPages>> PinnedPagesList::Since(uint64_t first,
                                                                 int64_t generation) const {
  std::vector<std::shared_ptr<PinnedPages>> found;
  absl::MutexLock lock(&mutex_);
  for (uint64_t i = first < first_ ? 0 : first - first_; i < pages_.size(); ++i) {
    if (pages_[i]->generation() == generation && !pages_[i]->empty()) found.push_back(pages_[i]);
  }
  return found;
}

void PinnedPagesList::DropBefore(uint64_t first) {
  absl::MutexLock lock(&mutex_);
  while (!pages_.empty() && first_ < first) {
    pages_.pop_front();
    ++first_;
  }
}

uint64_t PinnedPagesList::disk_bytes() const {
  uint64_t bytes = 0;
  absl::MutexLock lock(&mutex_);
  for (const auto& pages : pages_) bytes += pages->disk_bytes();
  return bytes;
}

}  // namespace h5mirror::store
