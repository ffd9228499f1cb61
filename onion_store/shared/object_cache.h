// Reads objects of an archive in blocks, and keeps the blocks that were read last.
//
//   Read() --> the block is here: copies
//          --> another thread gets it: waits for that, and looks again
//          --> gets it, with no lock held --> keeps it, and lets go of those used least recently
#ifndef H5MIRROR_ONION_STORE_SHARED_OBJECT_CACHE_H_
#define H5MIRROR_ONION_STORE_SHARED_OBJECT_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "onion_store/object_store.h"
#include "onion_store/shared/memory_budget.h"

namespace h5mirror::store {

// Thread-safe. Holds no lock over a call of the archive.
class ObjectCache {
 public:
  static constexpr uint64_t kBlockBytes = 1 << 20;
  // The timeout of one call of the archive, its tries included.
  static constexpr absl::Duration kGetTimeout = absl::Seconds(60);

  // The maximum for a store: a sixteenth of `memory_max_bytes`, but at least 4 blocks.
  static uint64_t MaxFor(uint64_t memory_max_bytes);

  // `store` may be null: there is no archive. `budget` must outlive this.
  ObjectCache(std::shared_ptr<ObjectStore> store, MemoryBudget& budget, uint64_t max_bytes)
      : store_(std::move(store)), max_bytes_(max_bytes), charge_(budget) {}

  // Null: there is none.
  ObjectStore* store() const { return store_.get(); }

  // Fills `out` with the bytes [offset, offset + out.size()) of an object of `object_bytes` bytes.
  // Errors: kFailedPrecondition  there is no archive.
  //         kOutOfRange          the bytes reach beyond `object_bytes`.
  //         those of ObjectStore::Get().
  absl::Status Read(const std::string& object, uint64_t object_bytes, uint64_t offset,
                    absl::Span<char> out) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the blocks of an object. False: there were none.
  bool Forget(const std::string& object) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<std::string, uint64_t>;  // object, number of the block
  using Bytes = std::shared_ptr<const std::string>;
  struct Block {
    Bytes bytes;
    std::list<Key>::iterator use;
  };

  absl::StatusOr<Bytes> BlockOf(const Key& key, uint64_t object_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: the block is not here, and the caller must get it.
  Bytes FindOrClaim(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(const Key& key, const Bytes& bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(std::map<Key, Block>::iterator block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<ObjectStore> store_;
  const uint64_t max_bytes_;
  absl::Mutex mutex_;
  std::map<Key, Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::list<Key> uses_ ABSL_GUARDED_BY(mutex_);   // the least recent first
  std::set<Key> wanted_ ABSL_GUARDED_BY(mutex_);  // a thread gets it now
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  MemoryCharge charge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_OBJECT_CACHE_H_
