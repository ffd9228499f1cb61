#include "swmr_agent/block_pool.h"

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::agent {
namespace {

using Kind = BlockPool::Kind;

BlockPtr Filled(BlockPool& pool, Kind kind) {
  auto block = std::make_shared<Block>(kBlockBytes);
  pool.Fill(block, std::string(kBlockBytes, 'x'), kind);
  return block;
}

TEST(BlockPoolTest, WhatWasUsedLeastRecentlyGoesFirst) {
  BlockPool pool(3 * kBlockBytes);
  const BlockPtr first = Filled(pool, Kind::kRaw), second = Filled(pool, Kind::kRaw),
                 third = Filled(pool, Kind::kRaw);
  EXPECT_NE(pool.Get(first), nullptr);
  const BlockPtr fourth = Filled(pool, Kind::kRaw);
  EXPECT_EQ(pool.Get(second), nullptr);
  EXPECT_NE(pool.Get(first), nullptr);
  EXPECT_NE(pool.Get(third), nullptr);
  EXPECT_LE(pool.count().used_bytes, pool.capacity_bytes());
}

TEST(BlockPoolTest, AScanLeavesMetadataHalfOfTheCapacity) {
  BlockPool pool(4 * kBlockBytes);
  const BlockPtr one = Filled(pool, Kind::kMetadata), other = Filled(pool, Kind::kMetadata);
  for (int i = 0; i < 20; ++i) Filled(pool, Kind::kRaw);
  EXPECT_NE(pool.Get(one), nullptr);
  EXPECT_NE(pool.Get(other), nullptr);
  EXPECT_EQ(pool.count().used_bytes, pool.capacity_bytes());
}

TEST(BlockPoolTest, ABlockIsKnownWhenAllOfItsPagesAre) {
  BlockPool pool(1 << 20);
  const auto block = std::make_shared<Block>(2 * kPageBytes + 10);
  pool.Patch(block, kPageBytes, std::string(kPageBytes, 'b'), Kind::kMetadata);
  pool.Patch(block, 2 * kPageBytes, "0123456789", Kind::kMetadata);
  EXPECT_EQ(pool.Get(block), nullptr);
  pool.Patch(block, 0, std::string(kPageBytes, 'a'), Kind::kMetadata);
  const BytesPtr bytes = pool.Get(block);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(*bytes, std::string(kPageBytes, 'a') + std::string(kPageBytes, 'b') + "0123456789");
}

TEST(BlockPoolTest, WhatIsReservedIsAtMostHalfAndALackIsToldOnce) {
  BlockPool pool(4 * kBlockBytes);
  EXPECT_TRUE(pool.TryReserve(2 * kBlockBytes));
  EXPECT_FALSE(pool.TakeLackOfMemory());
  EXPECT_FALSE(pool.TryReserve(1));
  EXPECT_TRUE(pool.TakeLackOfMemory());
  EXPECT_FALSE(pool.TakeLackOfMemory());
}

TEST(BlockPoolTest, AReleaseEndsTheWaitForThatBlockAlone) {
  BlockPool pool(1 << 20);
  const auto one = std::make_shared<Block>(kBlockBytes),
             other = std::make_shared<Block>(kBlockBytes);
  for (const BlockPtr& block : {one, other}) {
    ASSERT_EQ(pool.TryClaim(block), BlockPool::Claim::kClaimed);
  }
  absl::Notification is_done;
  std::thread waits_for_one([&] { EXPECT_TRUE(pool.AwaitRelease(one, absl::InfiniteFuture())); });
  std::thread waits_for_other([&] {
    EXPECT_TRUE(pool.AwaitRelease(other, absl::InfiniteFuture()));
    is_done.Notify();
  });
  pool.Release(one);
  waits_for_one.join();
  EXPECT_FALSE(is_done.HasBeenNotified());
  pool.Release(other);
  waits_for_other.join();
  ASSERT_EQ(pool.TryClaim(one), BlockPool::Claim::kClaimed);
  EXPECT_FALSE(pool.AwaitRelease(one, absl::Now())) << "late";
}

TEST(BlockPoolTest, ACopyForgetsWhatChangedAndLeavesTheOriginal) {
  BlockPool pool(1 << 20);
  const BlockPtr block = Filled(pool, Kind::kRaw);
  const BlockPtr copy = pool.CopyWithout(block, kBlockBytes, kPageBytes + 1, kPageBytes + 2);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(pool.Get(copy), nullptr);
  pool.Patch(copy, kPageBytes, std::string(kPageBytes, 'y'), Kind::kRaw);
  EXPECT_NE(pool.Get(copy), nullptr);
  EXPECT_EQ(*pool.Get(block), std::string(kBlockBytes, 'x'));
  EXPECT_EQ(pool.CopyWithout(block, kBlockBytes, 0, kBlockBytes), nullptr);
}

TEST(BlockPoolTest, OneClaimsAndTheOthersWait) {
  BlockPool pool(1 << 20);
  const auto block = std::make_shared<Block>(kBlockBytes);
  EXPECT_EQ(pool.TryClaim(block), BlockPool::Claim::kClaimed);
  EXPECT_EQ(pool.TryClaim(block), BlockPool::Claim::kBusy);
  EXPECT_FALSE(pool.AwaitRelease(block, absl::InfinitePast()));
  pool.Fill(block, std::string(kBlockBytes, 'x'), Kind::kRaw);
  pool.Release(block);
  EXPECT_TRUE(pool.AwaitRelease(block, absl::InfiniteFuture()));
  EXPECT_EQ(pool.TryClaim(block), BlockPool::Claim::kKnown);
}

}  // namespace
}  // namespace h5mirror::agent
