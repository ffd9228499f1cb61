#include "rpc/block_cache.h"

#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;

void Fill(BlockCache& cache, uint64_t owner, ReadKind kind, uint64_t from, uint64_t count) {
  for (uint64_t i = from; i < from + count; ++i) {
    cache.Insert(owner, i, kind, std::string(kBlock, 'x'));
  }
}

TEST(BlockCacheTest, WhatWasUsedLeastRecentlyGoesFirst) {
  BlockCache cache(3 * kBlock);
  Fill(cache, 1, ReadKind::kMetadata, 0, 3);
  ASSERT_NE(cache.Find(1, 0), nullptr);
  Fill(cache, 1, ReadKind::kMetadata, 3, 1);
  EXPECT_TRUE(cache.Holds(1, 0));
  EXPECT_FALSE(cache.Holds(1, 1));
  EXPECT_EQ(cache.used_bytes(), 3 * kBlock);
}

TEST(BlockCacheTest, AScanOfRawDataLeavesHalfToMetadata) {
  BlockCache cache(8 * kBlock);
  Fill(cache, 1, ReadKind::kMetadata, 0, 4);
  Fill(cache, 1, ReadKind::kRaw, 100, 1000);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(cache.Holds(1, i)) << i;
  EXPECT_TRUE(cache.Holds(1, 1099));
  EXPECT_EQ(cache.used_bytes(), 8 * kBlock);
}

TEST(BlockCacheTest, WhatIsReservedIsMissing) {
  BlockCache cache(8 * kBlock);
  Fill(cache, 1, ReadKind::kRaw, 0, 8);
  EXPECT_TRUE(cache.Reserve(3 * kBlock));
  EXPECT_FALSE(cache.Reserve(2 * kBlock)) << "half of it";
  EXPECT_EQ(cache.used_bytes(), 8 * kBlock);
  EXPECT_FALSE(cache.Holds(1, 2));
  EXPECT_TRUE(cache.Holds(1, 3));
  cache.Unreserve(3 * kBlock);
  Fill(cache, 1, ReadKind::kRaw, 100, 3);
  EXPECT_TRUE(cache.Holds(1, 3));
}

TEST(BlockCacheTest, MetadataMayUseAllOfIt) {
  BlockCache cache(8 * kBlock);
  Fill(cache, 1, ReadKind::kRaw, 100, 2);
  Fill(cache, 1, ReadKind::kMetadata, 0, 20);
  EXPECT_TRUE(cache.Holds(1, 19));
  EXPECT_LE(cache.used_bytes(), 8 * kBlock);
}

void BringAhead(BlockCache& cache, uint64_t owner, uint64_t from, uint64_t count) {
  for (uint64_t i = from; i < from + count; ++i) {
    cache.InsertAhead(owner, i, std::string(kBlock, 'x'), kBlock);
  }
}

uint64_t Use(BlockCache& cache, uint64_t index, uint64_t bytes) {
  uint64_t ahead = 0;
  EXPECT_NE(cache.Use(1, index, bytes, &ahead), nullptr);
  return ahead;
}

TEST(BlockCacheTest, WhatCameAheadStaysUntilItWasRead) {
  BlockCache cache(8 * kBlock);
  EXPECT_EQ(cache.room_ahead_bytes(), 6 * kBlock);
  Fill(cache, 1, ReadKind::kRaw, 0, 4);
  BringAhead(cache, 1, 10, 4);
  EXPECT_EQ(cache.room_ahead_bytes(), 2 * kBlock);
  Fill(cache, 1, ReadKind::kRaw, 20, 100);
  for (uint64_t i = 10; i < 14; ++i) EXPECT_TRUE(cache.Holds(1, i)) << i;
  EXPECT_EQ(Use(cache, 11, kBlock - 1), kBlock - 1);
  EXPECT_EQ(Use(cache, 12, 2 * kBlock), kBlock);
  EXPECT_EQ(cache.room_ahead_bytes(), 3 * kBlock);
  Fill(cache, 1, ReadKind::kRaw, 200, 1);
  EXPECT_FALSE(cache.Holds(1, 12)) << "it goes first";
  EXPECT_TRUE(cache.Holds(1, 11)) << "a byte of it is unread";
  EXPECT_EQ(Use(cache, 11, kBlock), 1);
  EXPECT_EQ(Use(cache, 11, 1), 0) << "it was read already";
  EXPECT_EQ(cache.used_bytes(), 8 * kBlock);
}

TEST(BlockCacheTest, NobodyWaitsForBlocksWhoseLastReaderHasGone) {
  BlockCache cache(8 * kBlock);
  for (uint64_t owner : {1, 1, 2}) cache.BeginAhead(owner);
  BringAhead(cache, 1, 0, 3);
  BringAhead(cache, 2, 0, 1);
  cache.EndAhead(1);
  EXPECT_EQ(cache.room_ahead_bytes(), 2 * kBlock) << "the other reader waits for them";
  cache.EndAhead(1);
  EXPECT_EQ(cache.room_ahead_bytes(), 5 * kBlock);
  Fill(cache, 3, ReadKind::kRaw, 0, 8);
  EXPECT_TRUE(cache.Holds(2, 0));
  EXPECT_FALSE(cache.Holds(1, 0));
}

TEST(BlockCacheTest, WhatCameFirstIsGivenUpFirst) {
  BlockCache cache(8 * kBlock);
  BringAhead(cache, 1, 0, 4);
  cache.GiveUpAhead(kBlock + 1);
  EXPECT_EQ(cache.room_ahead_bytes(), 4 * kBlock);
  Fill(cache, 2, ReadKind::kRaw, 0, 6);
  EXPECT_FALSE(cache.Holds(1, 0));
  EXPECT_TRUE(cache.Holds(1, 3));
  cache.GiveUpAhead(100 * kBlock);
  EXPECT_EQ(cache.room_ahead_bytes(), 6 * kBlock);
}

TEST(BlockCacheTest, MetadataTakesTheRoomOfWhatCameAhead) {
  BlockCache cache(8 * kBlock);
  BringAhead(cache, 1, 0, 6);
  Fill(cache, 1, ReadKind::kMetadata, 10, 4);
  EXPECT_TRUE(cache.Holds(1, 13));
  EXPECT_EQ(cache.used_bytes(), 8 * kBlock);
  EXPECT_EQ(cache.room_ahead_bytes(), 0);
}

TEST(BlockCacheTest, AVersionThatIsOpenedAgainFindsItsBlocks) {
  BlockCache cache(8 * kBlock);
  const uint64_t owner = cache.OwnerOf("run.h5@3");
  EXPECT_NE(cache.OwnerOf("run.h5@4"), owner);
  EXPECT_EQ(cache.OwnerOf("run.h5@3"), owner);
  for (int i = 0; i < 20'000; ++i) cache.OwnerOf(std::to_string(i));
  EXPECT_NE(cache.OwnerOf("run.h5@3"), owner) << "forgotten, and never given to another";
}

}  // namespace
}  // namespace h5mirror::rpc
