#include "client_vfd/plugin/metadata_buffer/buffer_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

// Linux 5.14; older C libraries do not have its name.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace h5mirror::vfd {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

// Pages that are about to be written are populated in units of this size. Otherwise each costs a
// page fault, which takes longer than the copy into it.
constexpr size_t kPopulateBytes = 64 << 10;

// Blocks that nobody uses, so that a program that flushes often does not have its memory given back
// and made anew each time.
constexpr size_t kSpareBlocksMax = 16;

struct Spare {
  std::mutex mutex;
  std::vector<char*> blocks;  // of kBlockBytes
};

Spare& TheSpare() {
  static auto* spare = [] {
    auto* made = new Spare;
    made->blocks.reserve(kSpareBlocksMax);
    return made;
  }();
  return *spare;
}

// Null: there is none.
char* TakeSpare() {
  Spare& spare = TheSpare();
  const std::lock_guard lock(spare.mutex);
  if (spare.blocks.empty()) return nullptr;
  char* const block = spare.blocks.back();
  spare.blocks.pop_back();
  return block;
}

bool KeepSpare(char* block) {
  Spare& spare = TheSpare();
  const std::lock_guard lock(spare.mutex);
  if (spare.blocks.size() == kSpareBlocksMax) return false;
  spare.blocks.push_back(block);
  return true;
}

}  // namespace

BufferArena::~BufferArena() { Clear(); }

void BufferArena::AddBlock(size_t size_bytes) {
  blocks_.emplace_back();  // First, as it may throw.
  void* start = size_bytes == kBlockBytes ? TakeSpare() : nullptr;
  const bool is_spare = start != nullptr;
  if (!is_spare) {
    start = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (start == MAP_FAILED) {
    blocks_.pop_back();
    throw std::bad_alloc();
  }
  blocks_.back() = {static_cast<char*>(start), size_bytes};
  next_ = blocks_.back().start;
  end_ = next_ + size_bytes;
  populated_end_ = is_spare ? end_ : next_;
}

void BufferArena::Advance(size_t size_bytes) {
  next_ += size_bytes;
  taken_bytes_ += size_bytes;
  if (next_ > populated_end_) Populate();
}

// Only for speed: where the system cannot, each page comes when it is written.
void BufferArena::Populate() {
  const auto wanted = static_cast<size_t>(next_ - populated_end_);
  const size_t steps = (wanted + kPopulateBytes - 1) / kPopulateBytes;
  const size_t count = std::min(steps * kPopulateBytes, static_cast<size_t>(end_ - populated_end_));
  static_cast<void>(madvise(populated_end_, count, MADV_POPULATE_WRITE));
  populated_end_ += count;
}

char* BufferArena::Take(size_t size_bytes) {
  if (static_cast<size_t>(end_ - next_) < size_bytes) AddBlock(std::max(size_bytes, kBlockBytes));
  char* const taken = next_;
  Advance(size_bytes);
  return taken;
}

bool BufferArena::Grow(const char* end, size_t size_bytes) {
  if (end != next_ || static_cast<size_t>(end_ - next_) < size_bytes) return false;
  Advance(size_bytes);
  return true;
}

void BufferArena::Swap(BufferArena& other) {
  blocks_.swap(other.blocks_);
  std::swap(next_, other.next_);
  std::swap(end_, other.end_);
  std::swap(populated_end_, other.populated_end_);
  std::swap(taken_bytes_, other.taken_bytes_);
}

void BufferArena::Clear() {
  for (const Block& block : blocks_) {
    const bool kept = block.size_bytes == kBlockBytes && KeepSpare(block.start);
    if (!kept) munmap(block.start, block.size_bytes);
  }
  blocks_.clear();
  next_ = end_ = populated_end_ = nullptr;
  taken_bytes_ = 0;
}

}  // namespace h5mirror::vfd
