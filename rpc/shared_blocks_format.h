// Blocks of a file in memory that h5mirror-agent fills and readers of one user map:
// docs/design/052-blocks-in-shared-memory.md. Both sides are on one host. The two sides may be of
// different releases: another layout gets another magic.
#ifndef H5MIRROR_RPC_SHARED_BLOCKS_FORMAT_H_
#define H5MIRROR_RPC_SHARED_BLOCKS_FORMAT_H_

#include <atomic>
#include <cstdint>

namespace h5mirror::rpc {

inline constexpr uint64_t kSharedBlockBytes = 64 << 10;
// A block lies in one of the slots of its set: set `block % set_count`.
inline constexpr uint64_t kSharedWays = 8;
// The most blocks that one message asks for: 4 MiB.
inline constexpr uint32_t kSharedWantMax = 64;

// The table's memory: this header, and then an entry for each slot, set by set. The other memory
// has their bytes, where blocks that follow each other lie so too: SharedSlotOffset().
struct SharedBlocksHeader {
  char magic[8];  // kSharedMagic
  uint64_t set_count;
  uint64_t unused[2];
};
static_assert(sizeof(SharedBlocksHeader) == 32);
inline constexpr char kSharedMagic[9] = "H5MBLK02";

// Where a slot has its bytes: first come the first slots of all sets, then the second ones, and so
// on.
constexpr uint64_t SharedSlotOffset(uint64_t slot, uint64_t set_count) {
  return (slot % kSharedWays * set_count + slot / kSharedWays) * kSharedBlockBytes;
}

// The agent alone writes an entry. It raises `sequence` to an odd number before a change of the
// bytes or of the block, and to an even one after it. `last_cut` may grow smaller without that.
//
// Cuts are counted by the agent, from 1 on, as they follow each other. A slot with zeros is empty.
struct SharedBlockEntry {
  std::atomic<uint64_t> sequence;
  std::atomic<uint64_t> block;
  std::atomic<uint64_t> first_cut;  // the bytes are those of the block in this cut,
  std::atomic<uint64_t> last_cut;   // and all up to this one; kSharedCurrent: and in the newest
};
static_assert(sizeof(SharedBlockEntry) == 32);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
inline constexpr uint64_t kSharedCurrent = UINT64_MAX;

// The answer to a question with CutMapQuestion::Kind::kBlocks. The descriptors come with it: the
// table and the bytes.
struct SharedBlocksAnswer {
  char magic[8];              // kSharedMagic
  uint32_t descriptor_count;  // 0: there is no memory; else 2
  uint32_t flags;             // kAnswersAlone; those of an agent before that: 0
  uint64_t cut;               // the reader's, as the agent counts
};
static_assert(sizeof(SharedBlocksAnswer) == 24);
// The agent knows SharedWant::kWaitOrAlone.
inline constexpr uint32_t kAnswersAlone = 1;

// From then on, from the reader. A connection has one kWait or kWaitOrAlone under way at most.
struct SharedWant {
  enum Kind : uint32_t {
    kWait = 1,         // answered by a SharedFilled once the blocks are there, or cannot be
    kAhead = 2,        // not answered. With no blocks: the reader still reads this cut
    kWaitOrAlone = 3,  // as kWait; kAlone is an answer too
  };
  uint64_t first;  // block
  uint32_t count;
  uint32_t kind;
};
static_assert(sizeof(SharedWant) == 16);

struct SharedFilled {
  enum Result : uint32_t {
    kFilled = 1,
    kNotNow = 2,  // read them in another way
    kNever = 3,   // no block of this cut will come any more
    // Nobody else reads the file, and the memory has no room for it: the reader gets its bytes at
    // the server with less work for all, and asks again after a while.
    kAlone = 4,
  };
  uint32_t result;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SHARED_BLOCKS_FORMAT_H_
