#include "client_vfd/session/state/progress_report.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kSecond = absl::Seconds(1);
constexpr uint64_t kMissing = 1000;

// A stream that has been taken, and whose state the server knows.
ProgressReport Told(H5mState state) {
  ProgressReport report;
  report.OnOpened(kStart);
  report.Take(state, kStart);
  return report;
}

TEST(ProgressReportTest, EachStreamBeginsWithAReport) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  EXPECT_FALSE(report.IsDue(H5M_STATE_MIRRORING, kStart + absl::Hours(1)));
  report.OnOpened(kStart);
  EXPECT_TRUE(report.IsDue(H5M_STATE_MIRRORING, kStart));
}

TEST(ProgressReportTest, AChangeIsToldAtOnce) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  EXPECT_TRUE(report.IsDue(H5M_STATE_RESYNCING, kStart));
}

TEST(ProgressReportTest, WhatLagsIsToldEachSecondAndOnceThatItIsOver) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.NotePending(true, kStart);
  report.Take(H5M_STATE_MIRRORING, kStart);
  EXPECT_FALSE(report.IsDue(H5M_STATE_MIRRORING, kStart + kSecond / 2));
  EXPECT_TRUE(report.IsDue(H5M_STATE_MIRRORING, kStart + kSecond));
  report.NotePending(false, kStart + kSecond);
  EXPECT_TRUE(report.IsDue(H5M_STATE_MIRRORING, kStart + kSecond));
  EXPECT_EQ(report.Take(H5M_STATE_MIRRORING, kStart + kSecond).pending_since, std::nullopt);
  EXPECT_FALSE(report.IsDue(H5M_STATE_MIRRORING, kStart + absl::Hours(1)));
}

TEST(ProgressReportTest, PendingCountsFromItsBeginning) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.NotePending(true, kStart + kSecond);
  report.NotePending(true, kStart + 5 * kSecond);
  const ProgressReport::Report said = report.Take(H5M_STATE_MIRRORING, kStart + 5 * kSecond);
  EXPECT_EQ(said.pending_since, kStart + kSecond);
  EXPECT_EQ(said.since, kStart);
  EXPECT_FALSE(said.resync.has_value());
}

TEST(ProgressReportTest, AResyncEndsWithTheLastCutThatWasClosed) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.BeginResync(kMissing, /*last_seq=*/4, /*closed_cuts=*/2, kStart + kSecond);
  EXPECT_TRUE(report.resyncs());
  EXPECT_FALSE(report.OnDurable(5));
  EXPECT_TRUE(report.OnDurable(6));
  EXPECT_FALSE(report.resyncs());
  EXPECT_FALSE(report.OnDurable(7)) << "it is over once";
}

TEST(ProgressReportTest, WithoutAClosedCutTheNextOneEndsIt) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.BeginResync(kMissing, /*last_seq=*/4, /*closed_cuts=*/0, kStart);
  EXPECT_FALSE(report.OnDurable(4));
  EXPECT_TRUE(report.OnDurable(5));
}

TEST(ProgressReportTest, NothingMissingIsNoResync) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.BeginResync(0, /*last_seq=*/4, /*closed_cuts=*/2, kStart);
  EXPECT_FALSE(report.resyncs());
}

TEST(ProgressReportTest, NeverMoreIsSentThanWasMissing) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.BeginResync(kMissing, /*last_seq=*/0, /*closed_cuts=*/1, kStart + kSecond);
  report.Sent(kMissing / 2);
  ProgressReport::Report said = report.Take(H5M_STATE_RESYNCING, kStart + kSecond);
  ASSERT_TRUE(said.resync.has_value());
  EXPECT_EQ(said.since, kStart + kSecond);
  EXPECT_EQ(said.resync->total_bytes, kMissing);
  EXPECT_EQ(said.resync->sent_bytes, kMissing / 2);
  report.Sent(kMissing);
  said = report.Take(H5M_STATE_RESYNCING, kStart + kSecond);
  EXPECT_EQ(said.resync->sent_bytes, kMissing);
}

TEST(ProgressReportTest, ALostStreamEndsAResyncUnsaid) {
  ProgressReport report = Told(H5M_STATE_MIRRORING);
  report.BeginResync(kMissing, /*last_seq=*/0, /*closed_cuts=*/1, kStart);
  report.StopResync();
  EXPECT_FALSE(report.resyncs());
  EXPECT_FALSE(report.OnDurable(1));
}

}  // namespace
}  // namespace h5mirror::vfd
