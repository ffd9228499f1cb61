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

// - Nothing comes ahead before a 32nd of the version, and 256 KiB, were read. Of a version of more
//   than 64 GiB nothing does.
// - Eight times as much comes ahead as was read, at most. So a reader that stops there has caused
//   a bounded transfer.
// - Of what came once, alone or ahead, nothing comes ahead again, until 7/8 of the version have
//   come and it is read anew.
// - A reader that wants bytes again before that, and which the cache has lost, needs the room
//   itself: less comes ahead then, see OnRepeat().
//
// A byte for each block of the version. Not thread-safe.
class ScatteredReads {
 public:
  // Blocks come in aligned groups of so many. Reads of half a group or more gain nothing by it.
  static constexpr uint64_t kGroup = 16;

  explicit ScatteredReads(uint64_t size_bytes) : size_bytes_(size_bytes) {}

  // The blocks to fetch for those that are `wanted`: the same, or more, at most `room_bytes` more.
  BlockRange Around(BlockRange wanted, uint64_t room_bytes) const;
  // All of these blocks came before.
  bool HaveCome(BlockRange blocks) const;
  // [offset, offset + length) was fetched alone, for a read that goes on no run.
  void OnAlone(uint64_t offset, uint64_t length);
  // These were fetched, for a read of so many bytes of the `wanted` ones.
  void OnCame(BlockRange came, BlockRange wanted, uint64_t bytes);
  // The reader got so many bytes that had come ahead.
  void OnUsed(uint64_t bytes) { read_bytes_ += bytes; }
  // Blocks that HaveCome() are wanted again. Returns how many bytes of what came ahead are to make
  // room; 0: all of the version is read anew.
  uint64_t OnRepeat();
  // The bytes of a block that are yet to be read, before it comes. An eighth is left out: it may
  // belong to other objects.
  uint64_t UnreadBytes(uint64_t block) const;

 private:
  // How many blocks may come ahead now.
  uint64_t Allowed(uint64_t room_bytes) const;
  // False: the version is too large.
  bool Count();
  void Mark(uint64_t block, uint64_t units);

  const uint64_t size_bytes_;
  std::vector<uint8_t>
      read_;            // of each block, in 256ths, rounded up; kWhole: all. Empty: not counted
  uint64_t whole_ = 0;  // blocks of which 7/8 or more were read, or that have come
  uint64_t read_bytes_ = 0;
  uint64_t ahead_bytes_ = 0;
  uint64_t kept_free_bytes_ = 0;  // for bytes that are read again
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SCATTERED_READS_H_
