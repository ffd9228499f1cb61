// The checksums of pages that were written directly to a head, taken from the bytes of the writes.
// So an apply need not read these pages back: for a first cut of 10 TB that would take hours.
//
//   Note()     a write. It gives the sums of the pages that it covers; and of a page that several
//              writes fill from its start on, each beginning where the one before ended
//   Forget()   any other change of a page: a write to a part of it, staged bytes over it, a
//              truncation, a write that failed
//   Read()     the sums that are known, for the sums file
//   Release()  they are in the sums file
//
// All of it is a hint: an unknown page is read back from the head. Some sums are in memory, the
// others in a nameless file. After an error of that file all sums are forgotten.
#ifndef H5MIRROR_ONION_STORE_PAGES_DIRECT_SUMS_H_
#define H5MIRROR_ONION_STORE_PAGES_DIRECT_SUMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "base/extent_set.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

// Thread-safe. The writer's calls come in the order of its writes. Takes at most some 150 KiB of
// memory for writes of any size, and 4 bytes of the disk a page.
class DirectSums {
 public:
  // The most sums in memory: those of 16 MiB of pages of 4 KiB.
  static constexpr uint64_t kWindowPages = 4096;
  // If there are more runs, the shortest are forgotten.
  static constexpr size_t kRunsMax = 2048;

  // `directory` must exist by the first Note(). `budget` and `tree` must outlive this.
  DirectSums(MemoryBudget& budget, EnvTree& tree, std::string directory, uint32_t page_size_bytes);

  // `pieces`, one after the other, are in the head at `offset` now.
  void Note(uint64_t offset, absl::Span<const std::string_view> pieces);
  // The pages that touch `bytes` are unknown from now on.
  void Forget(Extent bytes);
  // Forgets all pages that reach beyond `offset`.
  void ForgetFrom(uint64_t offset) { Forget({offset, UINT64_MAX - offset}); }
  // The pages below `end_page` are of cuts whose sums are durable.
  void Release(uint64_t end_page);

  // The first pages at or after `first` and before `end` that are known; length 0: none is.
  Extent NextPages(uint64_t first, uint64_t end) const;
  // Their stored forms (sums_file.h), 0 for a page of zeros. Empty: not all of them are known.
  std::vector<uint32_t> Read(uint64_t first_page, uint64_t page_count);

 private:
  // A page that was written from its start on, but not to its end.
  struct Tail {
    uint64_t page = 0;
    uint64_t bytes = 0;  // 0: there is none
    uint32_t crc = 0;    // of these
  };

  void ForgetLocked(Extent bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Put(uint64_t first_page, absl::Span<const uint32_t> sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Store(uint64_t first_page, absl::Span<const uint32_t> sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: the sums are in the window now.
  bool TakeInWindow(uint64_t first_page, absl::Span<const uint32_t> sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteWindow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadStored(uint64_t first_page, absl::Span<uint32_t> out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the shorter half of the runs: they save the least.
  void Thin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MemoryBudget& budget_;
  EnvTree& tree_;
  const std::string directory_;
  const uint32_t page_size_bytes_;
  const uint32_t zero_crc_;
  mutable absl::Mutex mutex_;
  ExtentSet known_ ABSL_GUARDED_BY(mutex_);  // numbers of pages
  Tail tail_ ABSL_GUARDED_BY(mutex_);
  // The sums of pages from window_first_ on; those of unknown pages mean nothing. While there is no
  // file, all known pages are in the window. Beside a file the window has no gap, and its sums
  // count instead of the file's.
  uint64_t window_first_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint32_t> window_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<EnvFile> file_ ABSL_GUARDED_BY(mutex_);  // the sum of page p at 4 * p
  MemoryCharge charge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_DIRECT_SUMS_H_
