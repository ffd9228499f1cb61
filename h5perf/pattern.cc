#include "h5perf/pattern.h"

namespace h5mirror::pperf {

Pattern::Pattern(const Workload& work, uint64_t buffer, int processes, int rank)
    : work_(work),
      buffer_(buffer),
      processes_(static_cast<uint64_t>(processes)),
      rank_(static_cast<uint64_t>(rank)),
      side_(work.bytes_per_process * processes_) {}

uint64_t Pattern::Begin() const {
  const uint64_t own = rank_ * work_.bytes_per_process;  // first byte, or row, of its own part
  if (!work_.interleaved) return work_.two_d ? own * side_ : own;
  const uint64_t block = work_.block;
  return rank_ * (work_.two_d && work_.chunked ? block * block : block);
}

std::array<uint64_t, 2> Pattern::MoveOf(uint64_t number) const {
  if (!work_.two_d) return {number * buffer_ * (work_.interleaved ? processes_ : 1), 0};
  // Along the columns to the end, then down by the height of the buffer.
  const uint64_t along = number * (work_.interleaved ? work_.block * processes_ : buffer_);
  const uint64_t height = work_.interleaved ? buffer_ : work_.block;
  return {along / side_ * height, along % side_};
}

Pieces Pattern::PiecesOf(uint64_t dataset, uint64_t number) const {
  const uint64_t base = dataset * dataset_bytes() + Begin();
  const uint64_t block = work_.block;
  const auto [row, column] = MoveOf(number);
  if (!work_.two_d) {
    if (!work_.interleaved) return {base + row, buffer_, 1, buffer_};
    return {base + row, block, buffer_ / block, block * processes_};
  }
  if (!work_.chunked) {
    const uint64_t offset = base + row * side_ + column;
    if (!work_.interleaved) return {offset, buffer_, block, side_};
    return {offset, block, buffer_, side_};
  }
  if (!work_.interleaved)
    return {base + number * transfer_bytes(), transfer_bytes(), 1, transfer_bytes()};
  return {base + row * side_ + column * block, block * block, buffer_ / block, side_ * block};
}

Slab Pattern::FirstSlab() const {
  const uint64_t block = work_.block, own = rank_ * work_.bytes_per_process;
  const uint64_t blocks = buffer_ / block, turn = block * processes_;
  if (!work_.two_d) {
    return {{work_.interleaved ? block * rank_ : own, 0},
            {work_.interleaved ? turn : block, 1},
            {blocks, 1},
            {block, 1}};
  }
  if (work_.interleaved) return {{0, block * rank_}, {block, turn}, {blocks, 1}, {block, block}};
  return {{own, 0}, {1, block}, {1, blocks}, {block, block}};
}

std::array<uint64_t, 2> Pattern::BufferShape() const {
  if (!work_.two_d) return {buffer_, 1};
  if (work_.interleaved) return {buffer_, work_.block};
  return {work_.block, buffer_};
}

}  // namespace h5mirror::pperf
