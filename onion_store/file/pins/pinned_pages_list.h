// The pinned pages of one file, in the order in which they were begun.
//
//   number 2          number 3            number 4
//   cut 3 was pinned  cut 7 was pinned    cut 9 was pinned
//   [saved since 3]   [saved since 7]     [saved since 9]
//
// A reader of cut 3 looks into 2, 3 and 4, in this order: the first that has a page has it as cut
// 3 left it. A page that is in none of them is in the head, unchanged.
#ifndef H5MIRROR_ONION_STORE_FILE_PINS_PINNED_PAGES_LIST_H_
#define H5MIRROR_ONION_STORE_FILE_PINS_PINNED_PAGES_LIST_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/pages/pinned_pages.h"

namespace h5mirror::store {

// Thread-safe.
class PinnedPagesList {
 public:
  // `directory` is the history's; it must exist by the first save of a page. `budget` and `tree`
  // must outlive this, and the pinned pages that it returns.
  PinnedPagesList(MemoryBudget& budget, EnvTree& tree, std::string directory)
      : budget_(budget), tree_(tree), directory_(std::move(directory)) {}

  // The number of the pinned pages that will hold the present pages of the head of `generation`.
  // While the newest pinned pages are empty, they are used again.
  uint64_t Start(int64_t generation, uint32_t page_size_bytes);
  // The newest pinned pages of `generation`; null: there are none.
  std::shared_ptr<PinnedPages> NewestOf(int64_t generation) const;
  // The pinned pages of `generation`, from number `first` on, that are not empty; oldest first.
  std::vector<std::shared_ptr<PinnedPages>> Since(uint64_t first, int64_t generation) const;
  // Forgets the pinned pages below number `first`.
  void DropBefore(uint64_t first);
  // The disk space of all of them.
  uint64_t disk_bytes() const;

 private:
  MemoryBudget& budget_;
  EnvTree& tree_;
  const std::string directory_;
  mutable absl::Mutex mutex_;
  std::deque<std::shared_ptr<PinnedPages>> pages_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;  // the number of pages_.front()
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_PINS_PINNED_PAGES_LIST_H_
