#include "h5perf_serial/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "h5perf_serial/statistics.h"

namespace h5mirror::perf {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SizesTest, SuffixesArePowersOf1024InEitherCase) {
  EXPECT_EQ(*ParseSize("37M"), 38797312u);
  EXPECT_EQ(*ParseSize("4k"), 4096u);
  EXPECT_EQ(*ParseSize("2G"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseSize("12"), 12u);
}

TEST(SizesTest, WhatIsNoSizeIsQuoted) {
  for (const char* text : {"4X", "", "K", "-1", "4KB", "20000000000G", "1.5M"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(std::string(size.status().message()), HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(SizesTest, AListHasOneItemADimension) {
  EXPECT_THAT(*ParseSizes("2K,2,3m"), ElementsAre(2048, 2, 3 << 20));
  EXPECT_FALSE(ParseSizes("2,,3").ok());
  EXPECT_FALSE(ParseSizes("").ok());
}

TEST(SizesTest, ExactMultiplesAreShownByTheirUnit) {
  EXPECT_EQ(SizesText({4096, 256, 3 << 20, uint64_t{2} << 30, 1025}), "4KB 256 3MB 2GB 1025 ");
}

TEST(StatisticsTest, PercentilesAreByNearestRank) {
  const Samples samples = {5, 1, 4, 2, 3};
  EXPECT_EQ(PercentileOf(samples, 50), 3);
  EXPECT_EQ(PercentileOf(samples, 90), 5);
  EXPECT_EQ(PercentileOf(samples, 1), 1);
  EXPECT_EQ(MedianOf({4, 1, 2, 3}), 2.5);
}

TEST(StatisticsTest, NoTimeIsNoRate) {
  EXPECT_EQ(RateOf(1 << 20, 0), 0);
  EXPECT_THAT(RateOf(3 << 20, 2), DoubleEq(1.5));
}

TEST(StatisticsTest, RatiosAreOfTheSameRound) {
  EXPECT_THAT(RatiosOf({2, 30, 5}, {1, 10, 0}), ElementsAre(2, 3));
}

}  // namespace
}  // namespace h5mirror::perf
