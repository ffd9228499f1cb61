// Counts the memory of all files of a store against one limit.
#ifndef H5MIRROR_ONION_STORE_SHARED_MEMORY_BUDGET_H_
#define H5MIRROR_ONION_STORE_SHARED_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace h5mirror::store {

// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t max_bytes) : max_bytes_(max_bytes) {}
  void Add(int64_t bytes) { used_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t used_bytes() const {
    int64_t used = used_bytes_.load(std::memory_order_relaxed);
    return used < 0 ? 0 : static_cast<uint64_t>(used);
  }
  // True: indexes of staged bytes are to move to the disk. That is so from half of the limit on;
  // the other half is for buffers and for the move itself.
  bool should_spill() const { return used_bytes() > max_bytes_ / 2; }
  // Room for buffers that only make work faster.
  uint64_t room_bytes() const {
    const uint64_t used = used_bytes();
    return used >= max_bytes_ / 4 ? 0 : max_bytes_ / 4 - used;
  }

 private:
  const uint64_t max_bytes_;
  std::atomic<int64_t> used_bytes_{0};
};

// Counts `bytes` while it lives.
class MemoryCharge {
 public:
  explicit MemoryCharge(MemoryBudget& budget, int64_t bytes = 0) : budget_(budget) { Set(bytes); }
  MemoryCharge(const MemoryCharge&) = delete;
  ~MemoryCharge() { Set(0); }
  void Set(int64_t bytes) {
    budget_.Add(bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  MemoryBudget& budget_;
  int64_t bytes_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_MEMORY_BUDGET_H_
