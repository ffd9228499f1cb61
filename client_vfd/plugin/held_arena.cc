#include "client_vfd/plugin/held_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace h5mirror::vfd {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

}  // namespace

HeldArena::~HeldArena() {
  for (const Block& block : blocks_) munmap(block.start, block.size_bytes);
}

void HeldArena::AddBlock(size_t size_bytes) {
  blocks_.reserve(blocks_.size() + 1);
  void* start =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  blocks_.push_back({static_cast<char*>(start), size_bytes});
  next_ = blocks_.back().start;
  end_ = next_ + size_bytes;
}

char* HeldArena::Take(size_t size_bytes) {
  if (static_cast<size_t>(end_ - next_) < size_bytes) AddBlock(std::max(size_bytes, kBlockBytes));
  char* const taken = next_;
  next_ += size_bytes;
  taken_bytes_ += size_bytes;
  return taken;
}

bool HeldArena::Grow(const char* end, size_t size_bytes) {
  if (end != next_ || static_cast<size_t>(end_ - next_) < size_bytes) return false;
  next_ += size_bytes;
  taken_bytes_ += size_bytes;
  return true;
}

void HeldArena::Clear() {
  taken_bytes_ = 0;
  if (blocks_.empty()) return;
  for (size_t at = 1; at < blocks_.size(); ++at) munmap(blocks_[at].start, blocks_[at].size_bytes);
  blocks_.resize(1);
  next_ = blocks_.front().start;
  end_ = next_ + blocks_.front().size_bytes;
}

}  // namespace h5mirror::vfd
