// Blocks of versions that were read, for all readers of a process. A version never changes, so a
// cached block is never stale.
#ifndef H5MIRROR_RPC_BLOCK_CACHE_H_
#define H5MIRROR_RPC_BLOCK_CACHE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::rpc {

// The use of bytes. A hint: it decides which blocks stay, never which bytes are read.
enum class ReadKind : uint8_t { kMetadata, kRaw };

// Bounded; drops the least recently used blocks first. Raw data cannot push metadata below half of
// the capacity: a scan of a large dataset leaves groups and indexes in the cache.
// Thread-safe.
class BlockCache {
 public:
  static constexpr uint64_t kBlockBytes = 64 << 10;
  using Block = std::shared_ptr<const std::string>;

  explicit BlockCache(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // The owner number of the blocks of `identity`. Each open of one version gets the same, as long
  // as it is remembered.
  uint64_t OwnerOf(const std::string& identity);

  // Null: the block is not in the cache.
  Block Find(uint64_t owner, uint64_t index);
  bool Holds(uint64_t owner, uint64_t index);
  // `bytes` is kBlockBytes long, the last block of a version shorter.
  void Insert(uint64_t owner, uint64_t index, ReadKind kind, std::string bytes);

  // As Find(), for a reader that takes so many bytes of the block. `ahead` gets those of them that
  // had come ahead and were unread.
  Block Use(uint64_t owner, uint64_t index, uint64_t bytes, uint64_t* ahead);

  // Raw data that comes ahead of a reader: between BeginAhead() and EndAhead() of each reader of
  // the owner. It goes after raw data that was read already, and counts as read once `unread_bytes`
  // of it were used, or its last reader has ended.
  void BeginAhead(uint64_t owner);
  void InsertAhead(uint64_t owner, uint64_t index, std::string bytes, uint64_t unread_bytes);
  void EndAhead(uint64_t owner);
  // So much of what came ahead first counts as read.
  void GiveUpAhead(uint64_t bytes);
  // The bytes that can come ahead and stay until they are read: of three quarters of the capacity,
  // what neither metadata takes, nor such bytes that are still unread.
  uint64_t room_ahead_bytes();

  // Reserves room for bytes that lie elsewhere, at most half of the capacity in all. False: there
  // is none.
  bool Reserve(uint64_t bytes);
  void Unreserve(uint64_t bytes);

  // Raises the capacity; a smaller one changes nothing.
  void Grow(uint64_t capacity_bytes);
  uint64_t capacity_bytes();
  uint64_t used_bytes();

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct List;
  struct Entry {
    Key key;
    Block block;
    List* list;
    uint64_t unread_bytes = 0;  // of what came ahead
  };
  struct List {
    std::list<Entry> entries;  // the most recently used first
    uint64_t bytes = 0;
  };
  using Place = std::list<Entry>::iterator;

  void Insert(Key key, List& list, std::string bytes, uint64_t unread_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block Find(Place entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Raw data that came ahead becomes the next to go.
  void Demote(Place entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  List& NextToLose(uint64_t room) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t UsedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return raw_.bytes + ahead_.bytes + metadata_.bytes;
  }

  absl::Mutex mutex_;
  uint64_t capacity_bytes_ ABSL_GUARDED_BY(mutex_);
  uint64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_owner_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, uint64_t> owners_ ABSL_GUARDED_BY(mutex_);
  List raw_ ABSL_GUARDED_BY(mutex_);
  List ahead_ ABSL_GUARDED_BY(mutex_);
  List metadata_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Place> index_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, int> ahead_readers_ ABSL_GUARDED_BY(mutex_);  // by owner
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_BLOCK_CACHE_H_
