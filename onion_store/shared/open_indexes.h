// Bounds how many indexes of files are open at once.
//
// An open index takes kIndexBytes of memory and two descriptors. A closed index can be opened again
// in half a millisecond. So beyond a maximum, opening an index closes the least recently used one.
//
//   Opened(index) --> Use(index), with each call --> TryClose() of the least recently used one
//                                                --> Closed(index): its owner has closed it
#ifndef H5MIRROR_ONION_STORE_SHARED_OPEN_INDEXES_H_
#define H5MIRROR_ONION_STORE_SHARED_OPEN_INDEXES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

// An index that can be closed between two calls, and opens itself again.
class ClosableIndex {
 public:
  virtual ~ClosableIndex() = default;
  // Closes it. False: a call uses it now, or it must stay open. Waits for nothing, and calls no
  // OpenIndexes.
  virtual bool TryClose() = 0;

 private:
  friend class OpenIndexes;
  std::atomic<uint64_t> last_use_{0};
};

// Thread-safe. May be called with the lock of an index held.
class OpenIndexes {
 public:
  // SQLite's memory for one index: measured on 10,000 files, see bench/README.md, "roots".
  static constexpr uint64_t kIndexBytes = 178 << 10;

  // The maximum for a store: indexes may take an eighth of `memory_max_bytes`, but 4 may always be
  // open.
  static size_t MaxFor(uint64_t memory_max_bytes);

  // `budget` must outlive it. Counts the memory of all that are open.
  OpenIndexes(MemoryBudget& budget, size_t open_max) : open_max_(open_max), charge_(budget) {}

  // A call uses `index`.
  void Use(ClosableIndex& index) {
    index.last_use_.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  }
  // The caller has opened `index`, within a call of it. Closes other indexes down to the maximum,
  // unless none of them can be closed now.
  void Opened(ClosableIndex& index) ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller has closed `index`, or never opened it. No other thread closes it once this has
  // returned.
  void Closed(ClosableIndex& index) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t open_count() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Closes one besides `opened`. False: none can be closed now.
  bool CloseOne(const ClosableIndex& opened) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Recount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t open_max_;
  std::atomic<uint64_t> uses_{0};
  absl::Mutex mutex_;
  absl::flat_hash_set<ClosableIndex*> open_ ABSL_GUARDED_BY(mutex_);
  MemoryCharge charge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_OPEN_INDEXES_H_
