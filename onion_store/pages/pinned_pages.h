// Pinned pages: the former bytes of pages of a head, for readers of pinned cuts. Pins end with the
// process, so the pages are in a nameless temporary file that is never synced.
#ifndef H5MIRROR_ONION_STORE_PAGES_PINNED_PAGES_H_
#define H5MIRROR_ONION_STORE_PAGES_PINNED_PAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

// Thread-safe. One thread saves pages at a time; costs some 20 bytes of memory a page.
class PinnedPages {
 public:
  // `directory` must exist by the first Save(). `tree` and `budget` must outlive this.
  PinnedPages(MemoryBudget& budget, EnvTree& tree, std::string directory, int64_t generation,
              uint32_t page_size_bytes);

  // The generation of the head whose pages these are.
  int64_t generation() const { return generation_; }
  bool Has(uint64_t page) const;
  // Saves the pages in `bytes`; it must have none of them yet. Errors: those of writing a file.
  absl::Status Save(uint64_t first_page, std::string_view bytes);
  // Notes that `page` was damaged in the head: its former bytes are lost.
  void SaveLoss(uint64_t page);

  enum class Found : uint8_t { kNo, kYes, kLost };
  // Fills `out` with `page`. kNo: it was not saved. kLost: see SaveLoss().
  absl::StatusOr<Found> Read(uint64_t page, absl::Span<char> out) const;
  // The first saved page at or after `page`; UINT64_MAX: none.
  uint64_t NextPage(uint64_t page) const;

  bool empty() const;
  uint64_t disk_bytes() const;

 private:
  static constexpr uint64_t kLoss = UINT64_MAX;

  EnvTree& tree_;
  const std::string directory_;
  const int64_t generation_;
  const uint32_t page_size_bytes_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<EnvFile> file_ ABSL_GUARDED_BY(mutex_);  // null before the first page
  absl::btree_map<uint64_t, uint64_t> places_ ABSL_GUARDED_BY(mutex_);  // offsets, or kLoss
  uint64_t end_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  MemoryCharge charge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_PINNED_PAGES_H_
