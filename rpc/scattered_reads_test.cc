#include "rpc/scattered_reads.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/block_cache.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
constexpr uint64_t kBlocks = 1000;
constexpr uint64_t kRoom = kBlocks * kBlock;

BlockRange One(uint64_t block) { return {block, block + 1}; }

TEST(ScatteredReadsTest, LittleThatWasReadBringsNothing) {
  ScatteredReads reads(kBlocks * kBlock);
  reads.OnRead(kBlocks * kBlock / 32 - 1);
  EXPECT_EQ(reads.Around(One(500), kRoom), One(500));
  reads.OnRead(1);
  EXPECT_EQ(reads.Around(One(500), kRoom), (BlockRange{496, 512}));
}

TEST(ScatteredReadsTest, OfASmallVersionFourBlocksAreRead) {
  ScatteredReads reads(20 * kBlock);
  reads.OnRead(4 * kBlock - 1);
  EXPECT_EQ(reads.Around(One(3), kRoom), One(3));
  reads.OnRead(1);
  EXPECT_EQ(reads.Around(One(3), kRoom), (BlockRange{0, 16}));
  EXPECT_EQ(reads.Around(One(17), kRoom), (BlockRange{16, 20})) << "up to its end";
}

TEST(ScatteredReadsTest, AReadOfTwoGroupsBringsBoth) {
  ScatteredReads reads(kBlocks * kBlock);
  reads.OnRead(kRoom);
  EXPECT_EQ(reads.Around({15, 17}, kRoom), (BlockRange{0, 32}));
  EXPECT_EQ(reads.Around({10, 20}, kRoom), (BlockRange{10, 20})) << "it is long enough";
}

TEST(ScatteredReadsTest, NoMoreComesThanThereIsRoomFor) {
  ScatteredReads reads(kBlocks * kBlock);
  reads.OnRead(kRoom);
  EXPECT_EQ(reads.Around(One(500), 3 * kBlock).count(), 4);
  EXPECT_EQ(reads.Around(One(500), kBlock - 1), One(500));
}

TEST(ScatteredReadsTest, ABlockComesAheadOnce) {
  ScatteredReads reads(kBlocks * kBlock);
  reads.OnRead(kRoom);
  const BlockRange first = reads.Around(One(500), kRoom);
  reads.OnCame(first, One(500));
  EXPECT_EQ(reads.Around(One(505), kRoom), One(505)) << "it was pushed out";
}

TEST(ScatteredReadsTest, AReaderThatStopsHasCausedABoundedTransfer) {
  ScatteredReads reads(kBlocks * kBlock);
  const uint64_t read = 40;
  reads.OnRead(read * kBlock);
  uint64_t ahead = 0;
  for (uint64_t block = 0; block < kBlocks; ++block) {
    const BlockRange around = reads.Around(One(block), kRoom);
    reads.OnCame(around, One(block));
    ahead += around.count() - 1;
  }
  EXPECT_EQ(ahead, 8 * read);
}

}  // namespace
}  // namespace h5mirror::rpc
