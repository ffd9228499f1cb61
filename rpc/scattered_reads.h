// Which blocks come with one that a reader wants, where it reads raw data here and there.
//
// In a version of which much was read in this way, the rest is likely to be wanted too. A call for
// 16 blocks costs little more than one for a single block, and spares 15 round trips. So blocks
// around the wanted one come ahead, as long as the cache has room for them until they are read.
#ifndef H5MIRROR_RPC_SCATTERED_READS_H_
#define H5MIRROR_RPC_SCATTERED_READS_H_

#include <cstdint>
#include <vector>

namespace h5mirror::rpc {

// Blocks [begin, end) of 64 KiB.
struct BlockRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t count() const { return end - begin; }
  bool operator==(const BlockRange&) const = default;
};

// - Nothing comes ahead before a 32nd of the version, and 256 KiB, were read.
// - Eight times as much comes ahead as was read, at most. So a reader that stops there has caused
//   a bounded transfer.
// - A block comes ahead once. One that was pushed out of the cache is fetched alone.
//
// Not thread-safe.
class ScatteredReads {
 public:
  // Blocks come in aligned groups of so many. Reads of half a group or more gain nothing by it.
  static constexpr uint64_t kGroup = 16;

  explicit ScatteredReads(uint64_t size_bytes);

  // A reader got so many bytes, by reads that go on no run.
  void OnRead(uint64_t bytes) { read_bytes_ += bytes; }
  // The blocks to fetch for those that are `wanted`: the same, or more, at most `room_bytes` more.
  BlockRange Around(BlockRange wanted, uint64_t room_bytes);
  // These came, for `wanted` ones.
  void OnCame(BlockRange came, BlockRange wanted);

 private:
  // How many blocks may come ahead now.
  uint64_t Allowed(uint64_t room_bytes) const;

  const uint64_t size_bytes_;
  std::vector<bool> came_;  // by block; empty: nothing has come ahead
  uint64_t read_bytes_ = 0;
  uint64_t ahead_bytes_ = 0;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SCATTERED_READS_H_
