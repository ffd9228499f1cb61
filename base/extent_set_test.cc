#include "base/extent_set.h"

#include <bitset>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ExtentSetTest, TouchingAndOverlappingExtentsBecomeOne) {
  ExtentSet set;
  set.Add({10, 10});
  set.Add({30, 10});
  set.Add({20, 5});
  set.Add({22, 10});
  EXPECT_THAT(set.ToVector(), ElementsAre(Extent{10, 30}));
  EXPECT_EQ(set.byte_count(), 30u);
  EXPECT_EQ(set.end(), 40u);
}

TEST(ExtentSetTest, RemovingTheMiddleLeavesBothEnds) {
  ExtentSet set;
  set.Add({0, 100});
  set.Remove({40, 20});
  EXPECT_THAT(set.ToVector(), ElementsAre(Extent{0, 40}, Extent{60, 40}));
  EXPECT_FALSE(set.Intersects({40, 20}));
  EXPECT_TRUE(set.Intersects({39, 1}));
  EXPECT_THAT(set.Intersection({30, 40}), ElementsAre(Extent{30, 10}, Extent{60, 10}));
}

TEST(ExtentSetTest, TruncateDropsWhatLiesBeyond) {
  ExtentSet set;
  set.Add({0, 10});
  set.Add({20, 10});
  set.TruncateTo(25);
  EXPECT_THAT(set.ToVector(), ElementsAre(Extent{0, 10}, Extent{20, 5}));
  set.TruncateTo(0);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.end(), 0u);
}

TEST(ExtentSetTest, TakeIsBoundedInBytesAndExtents) {
  ExtentSet set;
  for (uint64_t i = 0; i < 5; ++i) set.Add({i * 100, 10});
  EXPECT_THAT(set.Take(105, 12, 10), ElementsAre(Extent{105, 5}, Extent{200, 7}));
  EXPECT_THAT(set.Take(300, 1000, 1), ElementsAre(Extent{300, 10}));
  EXPECT_THAT(set.Take(401, 1000, 9), ElementsAre(Extent{401, 9}));
  EXPECT_THAT(set.Take(410, 1000, 9), IsEmpty());
  EXPECT_EQ(set.byte_count(), 10u + 5 + 3 + 1);
}

TEST(ExtentSetTest, FullSetClosesTheSmallestGaps) {
  ExtentSet set(4);
  set.Add({0, 10});
  set.Add({11, 9});     // a gap of 1
  set.Add({100, 10});   // 80
  set.Add({1000, 10});  // 890
  set.Add({1015, 10});  // 5
  EXPECT_THAT(set.ToVector(), ElementsAre(Extent{0, 20}, Extent{100, 10}, Extent{1000, 25}));
  EXPECT_EQ(set.byte_count(), 55u);
}

TEST(ExtentSetTest, FullSetTakesFromTheStartOfAnExtent) {
  ExtentSet set(1);
  set.Add({0, 100});
  EXPECT_THAT(set.Take(50, 10, 5), ElementsAre(Extent{0, 10}));
  EXPECT_EQ(set.extent_count(), 1u);
}

constexpr size_t kModelSize = 256;
using Model = std::bitset<kModelSize>;

Model BitsOf(const std::vector<Extent>& extents) {
  Model bits;
  for (const Extent& extent : extents) {
    for (uint64_t i = extent.offset; i < extent.end(); ++i) bits.set(i);
  }
  return bits;
}

void CheckInvariants(const ExtentSet& set) {
  uint64_t last_end = 0;
  uint64_t bytes = 0;
  for (const Extent& extent : set.ToVector()) {
    ASSERT_GT(extent.length, 0u);
    ASSERT_TRUE(bytes == 0 || extent.offset > last_end) << "extents touch at " << extent.offset;
    last_end = extent.end();
    bytes += extent.length;
  }
  ASSERT_EQ(set.byte_count(), bytes);
  ASSERT_EQ(set.end(), last_end);
}

// A random extent, empty ones and whole sets among them.
Extent RandomExtent(std::mt19937_64& random) {
  const uint64_t offset = random() % kModelSize;
  return {offset, std::min<uint64_t>(random() % 40, kModelSize - offset)};
}

TEST(ExtentSetTest, AgreesWithABitmap) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  ExtentSet set;
  Model model;
  for (int step = 0; step < 20'000; ++step) {
    const Extent extent = RandomExtent(random);
    const Model bits = BitsOf({extent});
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        set.Add(extent);
        model |= bits;
        break;
      case 3:
      case 4:
        set.Remove(extent);
        model &= ~bits;
        break;
      case 5:
        ASSERT_EQ(BitsOf(set.Intersection(extent)), model & bits);
        ASSERT_EQ(set.Intersects(extent), (model & bits).any());
        break;
      case 6: {
        const Model taken = BitsOf(set.Take(extent.offset, extent.length, 1 + random() % 3));
        ASSERT_EQ(taken & model, taken);
        model &= ~taken;
        break;
      }
      default:
        if (random() % 16 == 0) {
          set.TruncateTo(extent.offset);
          for (size_t i = extent.offset; i < kModelSize; ++i) model.reset(i);
        }
    }
    ASSERT_EQ(BitsOf(set.ToVector()), model);
    ASSERT_NO_FATAL_FAILURE(CheckInvariants(set));
  }
}

TEST(ExtentSetTest, BoundedSetCoversTheBitmapAndStaysBounded) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const size_t extents_max : {1, 2, 3, 8}) {
    ExtentSet set(extents_max);
    Model model;
    for (int step = 0; step < 3'000; ++step) {
      const Extent extent = RandomExtent(random);
      if (random() % 3 != 0) {
        set.Add({extent.offset, std::min<uint64_t>(extent.length, 3)});
        model |= BitsOf({{extent.offset, std::min<uint64_t>(extent.length, 3)}});
      } else {
        model &= ~BitsOf(set.Take(extent.offset, extent.length, 2));
      }
      ASSERT_LE(set.extent_count(), extents_max);
      ASSERT_EQ(BitsOf(set.ToVector()) & model, model);
      ASSERT_NO_FATAL_FAILURE(CheckInvariants(set));
    }
  }
}

}  // namespace
}  // namespace h5mirror
