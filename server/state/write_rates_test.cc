#include "server/state/write_rates.h"

#include <numeric>
#include <vector>

#include "base/testing/fake_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr Bytes16 kFile{1};
constexpr absl::Duration kInterval = WriteRates::kInterval;
const absl::Duration kAll = kInterval * static_cast<int64_t>(WriteRates::kIntervals);

class WriteRatesTest : public testing::Test {
 protected:
  std::vector<int64_t> Of(const Bytes16& file_id) {
    const auto writes = rates_.Of(file_id);
    if (!writes) return {};
    return {writes->received_bytes().begin(), writes->received_bytes().end()};
  }
  // Of the last three intervals.
  std::vector<int64_t> LastOf(const Bytes16& file_id) {
    const std::vector<int64_t> all = Of(file_id);
    return all.size() < 3 ? all : std::vector<int64_t>(all.end() - 3, all.end());
  }
  int64_t Sum() {
    const std::vector<int64_t> all = Of(kFile);
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  }

  FakeClock clock_;
  WriteRates rates_{clock_, /*files_max=*/3};
};

TEST_F(WriteRatesTest, BytesCountToTheIntervalInWhichTheyCame) {
  EXPECT_EQ(rates_.Of(kFile), std::nullopt);
  rates_.Add(kFile, 100);
  rates_.Add(kFile, 11);
  EXPECT_THAT(Of(kFile), SizeIs(WriteRates::kIntervals));
  EXPECT_THAT(LastOf(kFile), ElementsAre(0, 0, 111));
  clock_.Advance(kInterval);
  EXPECT_THAT(LastOf(kFile), ElementsAre(0, 111, 0));
  clock_.Advance(kInterval);
  rates_.Add(kFile, 5);
  EXPECT_THAT(LastOf(kFile), ElementsAre(111, 0, 5));
  EXPECT_EQ(Sum(), 116);
}

TEST_F(WriteRatesTest, TheLastIntervalEndsWithinItsLength) {
  rates_.Add(kFile, 1);
  const v1::RecentWrites writes = *rates_.Of(kFile);
  EXPECT_EQ(writes.interval_seconds(), 5);
  EXPECT_GT(FromProto(writes.end_time()), clock_.Now());
  EXPECT_LE(FromProto(writes.end_time()), clock_.Now() + kInterval);
}

TEST_F(WriteRatesTest, WhatIsLongAgoCountsNoMore) {
  rates_.Add(kFile, 100);
  clock_.Advance(kAll - kInterval);
  EXPECT_EQ(Sum(), 100);
  EXPECT_EQ(Of(kFile).front(), 100);
  clock_.Advance(kInterval);
  EXPECT_EQ(rates_.Of(kFile), std::nullopt);
  clock_.Advance(3 * kAll + kInterval);
  rates_.Add(kFile, 7);
  EXPECT_EQ(Sum(), 7) << "no bytes of long ago are left in the ring";
}

TEST_F(WriteRatesTest, WithTooManyFilesThoseWrittenLongestAgoGo) {
  for (const uint8_t file : {1, 2, 3}) rates_.Add({file}, file);
  rates_.Add({1}, 1);
  rates_.Add({4}, 4);
  EXPECT_EQ(rates_.size(), 3u);
  EXPECT_EQ(rates_.Of({2}), std::nullopt);
  EXPECT_THAT(LastOf({1}), ElementsAre(0, 0, 2));
}

TEST_F(WriteRatesTest, FilesThatNobodyWritesTakeNoRoom) {
  for (const uint8_t file : {1, 2, 3}) rates_.Add({file}, file);
  clock_.Advance(kAll);
  rates_.Add({4}, 4);
  EXPECT_EQ(rates_.size(), 1u);
}

TEST_F(WriteRatesTest, ARemovedFileIsForgotten) {
  rates_.Add(kFile, 1);
  rates_.Forget(kFile);
  EXPECT_EQ(rates_.Of(kFile), std::nullopt);
  rates_.Add(kFile, 0);
  EXPECT_EQ(rates_.size(), 0u) << "a session that has sent nothing is not told of";
}

}  // namespace
}  // namespace h5mirror::server
