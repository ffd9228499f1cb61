// Blocks of files that are followed, for all readers of a host: bounded, and fetched once.
#ifndef H5MIRROR_SWMR_AGENT_BLOCK_POOL_H_
#define H5MIRROR_SWMR_AGENT_BLOCK_POOL_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace h5mirror::agent {

inline constexpr uint64_t kBlockBytes = 64 << 10;
// Blocks are known by pages: the pages in which a server sends metadata.
inline constexpr uint64_t kPageBytes = 4 << 10;

using BytesPtr = std::shared_ptr<const std::string>;

class BlockPool;

// 64 KiB of a file (its last block may be shorter), as in all cuts between two that changed it.
class Block {
 public:
  explicit Block(uint64_t length_bytes) : length_bytes_(length_bytes) {}
  uint64_t length_bytes() const { return length_bytes_; }

 private:
  friend class BlockPool;

  const uint64_t length_bytes_;
  // Guarded by the pool's mutex. Bytes of pages that are not known are zeros.
  BytesPtr bytes_;      // null: nothing is known
  uint32_t known_ = 0;  // bit i: page i
  bool is_metadata_ = false;
  bool is_fetched_now_ = false;  // somebody has it from Claim()
  // Of each block its own: with one for all blocks each release woke all threads that wait.
  absl::CondVar released_;
  bool is_listed_ = false;
  std::list<std::shared_ptr<Block>>::iterator place_;
};
using BlockPtr = std::shared_ptr<Block>;

// Forgets the bytes of blocks that were used least recently; raw data does not push out metadata
// below half of the capacity. Readers share a block: while one of them fetches its bytes, the
// others wait for them. Thread-safe.
class BlockPool {
 public:
  explicit BlockPool(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  enum class Kind : uint8_t { kRaw, kMetadata };

  // All bytes of the block, or null: some are not known.
  BytesPtr Get(const BlockPtr& block);
  // The whole block.
  BytesPtr Fill(const BlockPtr& block, std::string bytes, Kind kind);
  // Whole pages from `offset` on (the block's last one may be shorter).
  void Patch(const BlockPtr& block, uint64_t offset, std::string_view pages, Kind kind);
  // A block of `length_bytes` with what `block` knows, but for the bytes [begin, end) and what is
  // beyond its end. Null: that is nothing.
  BlockPtr CopyWithout(const BlockPtr& block, uint64_t length_bytes, uint64_t begin, uint64_t end);
  // The known pages of a block, as of now (bit i of `pages`: page i).
  struct Known {
    BytesPtr bytes;
    uint32_t pages = 0;
  };
  Known Peek(const BlockPtr& block);
  // Whether nothing is known of it, and nobody fetches it.
  bool IsEmpty(const BlockPtr& block);

  enum class Claim : uint8_t { kKnown, kBusy, kClaimed };
  // kClaimed: the caller fetches it, and calls Release() in any case.
  Claim TryClaim(const BlockPtr& block);
  void Release(const BlockPtr& block);
  // False: somebody still fetches it at the deadline.
  bool AwaitRelease(const BlockPtr& block, absl::Time deadline);

  // Memory for something else, at most half of the capacity in all: so much less is for blocks
  // until it is given back. False: there is not so much.
  bool TryReserve(uint64_t bytes);
  // True once after a TryReserve() that was refused, or a NoteLackOfMemory().
  bool TakeLackOfMemory();
  // Somebody is about to do without memory that others have and do not use.
  void NoteLackOfMemory();
  void Unreserve(uint64_t bytes);

  // Of Get(): blocks that were known, and not.
  struct Count {
    uint64_t used_bytes = 0;
    uint64_t reserved_bytes = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;
  };
  Count count();
  uint64_t capacity_bytes() const { return capacity_bytes_; }

 private:
  using Blocks = std::list<BlockPtr>;  // the most recently used first

  static uint32_t AllPages(const Block& block);
  Blocks& ListOf(const Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return block.is_metadata_ ? metadata_ : raw_;
  }
  void Unlist(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lists it as the most recently used one of its kind, and makes room.
  void List(const BlockPtr& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Blocks& blocks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t capacity_bytes_;
  absl::Mutex mutex_;
  Blocks raw_ ABSL_GUARDED_BY(mutex_);
  Blocks metadata_ ABSL_GUARDED_BY(mutex_);
  uint64_t raw_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t metadata_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool lacks_memory_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t misses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_BLOCK_POOL_H_
