#include "rpc/scattered_reads.h"

#include "gtest/gtest.h"
#include "rpc/block_cache.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
constexpr uint64_t kBlocks = 1000;
constexpr uint64_t kRoom = kBlocks * kBlock;

BlockRange One(uint64_t block) { return {block, block + 1}; }

// Reads blocks alone.
void ReadAlone(ScatteredReads& reads, uint64_t first, uint64_t count) {
  reads.OnAlone(first * kBlock, count * kBlock);
}

TEST(ScatteredReadsTest, LittleThatWasReadBringsNothing) {
  ScatteredReads reads(kBlocks * kBlock);
  reads.OnAlone(0, kBlocks * kBlock / 32 - 1);
  EXPECT_EQ(reads.Around(One(500), kRoom), One(500));
  reads.OnAlone(kBlocks * kBlock / 32, 1);
  EXPECT_EQ(reads.Around(One(500), kRoom), (BlockRange{496, 512}));
}

TEST(ScatteredReadsTest, OfASmallVersionFourBlocksAreRead) {
  ScatteredReads reads(40 * kBlock);
  ReadAlone(reads, 32, 3);
  EXPECT_EQ(reads.Around(One(3), kRoom), One(3));
  ReadAlone(reads, 35, 1);
  EXPECT_EQ(reads.Around(One(3), kRoom), (BlockRange{0, 16}));
  EXPECT_EQ(reads.Around(One(37), kRoom), (BlockRange{36, 40})) << "from there to the end";
}

TEST(ScatteredReadsTest, AReadOfTwoGroupsBringsBoth) {
  ScatteredReads reads(kBlocks * kBlock);
  ReadAlone(reads, 900, 100);
  EXPECT_EQ(reads.Around({15, 17}, kRoom), (BlockRange{0, 32}));
  EXPECT_EQ(reads.Around({10, 20}, kRoom), (BlockRange{10, 20})) << "it is long enough";
}

TEST(ScatteredReadsTest, NoMoreComesThanThereIsRoomFor) {
  ScatteredReads reads(kBlocks * kBlock);
  ReadAlone(reads, 900, 100);
  EXPECT_EQ(reads.Around(One(500), 3 * kBlock).count(), 4);
  EXPECT_EQ(reads.Around(One(500), kBlock - 1), One(500));
}

TEST(ScatteredReadsTest, WhatCameOnceDoesNotComeAhead) {
  ScatteredReads reads(kBlocks * kBlock);
  ReadAlone(reads, 900, 100);
  ReadAlone(reads, 503, 1);
  const BlockRange first = reads.Around(One(500), kRoom);
  EXPECT_EQ(first, (BlockRange{496, 503}));
  reads.OnCame(first, One(500), kBlock);
  EXPECT_EQ(reads.Around(One(504), kRoom), (BlockRange{504, 512}));
  EXPECT_EQ(reads.Around(One(501), kRoom), One(501)) << "it was pushed out";
}

TEST(ScatteredReadsTest, APartThatWasReadIsNotAwaited) {
  ScatteredReads reads(kBlocks * kBlock);
  EXPECT_EQ(reads.UnreadBytes(3), kBlock * 7 / 8) << "the rest may be metadata";
  reads.OnAlone(3 * kBlock + 1000, kBlock / 2);
  EXPECT_EQ(reads.UnreadBytes(3), kBlock * 3 / 8);
  reads.OnAlone(3 * kBlock + 1000, kBlock / 2);
  EXPECT_EQ(reads.UnreadBytes(3), 0);
}

TEST(ScatteredReadsTest, AReaderThatStopsHasCausedABoundedTransfer) {
  ScatteredReads reads(kBlocks * kBlock);
  const uint64_t read = 40;
  ReadAlone(reads, 960, read);
  uint64_t ahead = 0;
  for (uint64_t block = 0; block < 960; ++block) {
    const BlockRange around = reads.Around(One(block), kRoom);
    reads.OnCame(around, One(block), 0);
    ahead += around.count() - 1;
  }
  EXPECT_EQ(ahead, 8 * read);
}

TEST(ScatteredReadsTest, BytesThatAreReadAgainGetTheRoom) {
  ScatteredReads reads(kBlocks * kBlock);
  ReadAlone(reads, 900, 100);
  ASSERT_TRUE(reads.HaveCome(One(950)));
  const uint64_t room = 20 * kBlock;
  EXPECT_EQ(reads.OnRepeat(), 16 * kBlock);
  EXPECT_EQ(reads.Around(One(500), room).count(), 5);
  EXPECT_EQ(reads.OnRepeat(), 16 * kBlock);
  EXPECT_EQ(reads.Around(One(500), room), One(500));
}

TEST(ScatteredReadsTest, AVersionThatIsReadAnewComesAheadAgain) {
  ScatteredReads reads(kBlocks * kBlock);
  ReadAlone(reads, 0, 875);
  ASSERT_TRUE(reads.HaveCome(One(500)));
  EXPECT_EQ(reads.Around(One(500), kRoom), One(500));
  EXPECT_EQ(reads.OnRepeat(), 0);
  EXPECT_EQ(reads.Around(One(500), kRoom), (BlockRange{496, 512}));
}

TEST(ScatteredReadsTest, OfAVersionOfOver64GiBNothingComesAhead) {
  ScatteredReads reads((uint64_t{64} << 30) + 1);
  reads.OnAlone(0, uint64_t{32} << 30);
  EXPECT_EQ(reads.Around(One(1'000'000), kRoom), One(1'000'000));
  EXPECT_FALSE(reads.HaveCome(One(0)));
}

}  // namespace
}  // namespace h5mirror::rpc
