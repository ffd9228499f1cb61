#include "server/http/byte_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Kind = ByteRanges::Kind;

std::vector<std::pair<uint64_t, uint64_t>> RangesOf(const std::string& header, uint64_t size) {
  const ByteRanges parsed = ParseByteRanges(header, size);
  EXPECT_EQ(parsed.kind, Kind::kSome) << header;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Extent& range : parsed.ranges) ranges.emplace_back(range.offset, range.length);
  return ranges;
}

TEST(ByteRangesTest, BothEndsAreIncluded) {
  EXPECT_THAT(RangesOf("bytes=0-0", 10), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(RangesOf("bytes=2-5", 10), ElementsAre(Pair(2, 4)));
  EXPECT_THAT(RangesOf("BYTES=9-", 10), ElementsAre(Pair(9, 1)));
}

TEST(ByteRangesTest, ARangeIsCutOffAtTheEnd) {
  EXPECT_THAT(RangesOf("bytes=8-99", 10), ElementsAre(Pair(8, 2)));
  EXPECT_THAT(RangesOf("bytes=8-99999999999999999999999", 10), ElementsAre(Pair(8, 2)));
  EXPECT_THAT(RangesOf("bytes=-3", 10), ElementsAre(Pair(7, 3)));
  EXPECT_THAT(RangesOf("bytes=-99", 10), ElementsAre(Pair(0, 10)));
}

TEST(ByteRangesTest, SeveralKeepTheirOrderAndLoseThoseBeyondTheEnd) {
  EXPECT_THAT(RangesOf("bytes=5-6, 0-1,,20-30", 10), ElementsAre(Pair(5, 2), Pair(0, 2)));
}

TEST(ByteRangesTest, WithoutAByteThereIsNone) {
  for (const char* header :
       {"bytes=10-", "bytes=10-12,11-", "bytes=-0", "bytes=99999999999999999999-"}) {
    EXPECT_EQ(ParseByteRanges(header, 10).kind, Kind::kNone) << header;
  }
  EXPECT_EQ(ParseByteRanges("bytes=0-", 0).kind, Kind::kNone);
  EXPECT_EQ(ParseByteRanges("bytes=-5", 0).kind, Kind::kNone);
}

TEST(ByteRangesTest, WhatIsMalformedIsRefused) {
  for (const char* header :
       {"bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=5-4", "bytes=1", "bytes=+1-2",
        "bytes=1-2-3", "bytes=0x1-2", "bytes=1 -2", "bytes=--1"}) {
    EXPECT_EQ(ParseByteRanges(header, 10).kind, Kind::kNone) << header;
  }
}

TEST(ByteRangesTest, AnotherUnitIsIgnored) {
  EXPECT_EQ(ParseByteRanges("pages=0-1", 10).kind, Kind::kWhole);
  EXPECT_EQ(ParseByteRanges("bytes", 10).kind, Kind::kWhole);
}

TEST(ByteRangesTest, OverlapsNeverMakeAnAnswerLongerThanTheFile) {
  EXPECT_THAT(RangesOf("bytes=0-4,2-6", 10), ElementsAre(Pair(0, 5), Pair(2, 5)));
  EXPECT_EQ(ParseByteRanges("bytes=0-,0-", 10).kind, Kind::kWhole);
  EXPECT_EQ(ParseByteRanges("bytes=0-5,5-9", 10).kind, Kind::kWhole);
}

TEST(ByteRangesTest, TooManyAreRefused) {
  std::string header = "bytes=0-0";
  for (size_t i = 1; i < kByteRangesMax; ++i) header += ",0-0";
  EXPECT_EQ(ParseByteRanges(header, 1'000'000).ranges.size(), kByteRangesMax);
  EXPECT_EQ(ParseByteRanges(header + ",0-0", 1'000'000).kind, Kind::kNone);
}

}  // namespace
}  // namespace h5mirror::server
