#include "client_vfd/session/state/stream_clock.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kMoment = absl::Milliseconds(1);
constexpr uint64_t kFrame = 1 << 20;
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

StreamClock Begun(absl::Duration timeout = kTimeout) {
  StreamClock clock(timeout, kFrame);
  clock.Begin(kStart);
  return clock;
}

TEST(StreamClockTest, AStreamThatOwesNothingNeverHangs) {
  const StreamClock clock = Begun();
  EXPECT_FALSE(clock.IsHung(kStart + absl::Hours(1), clock.owed_since()));
}

TEST(StreamClockTest, AnOwedAnswerIsWaitedForLongerThanTheProgramDoes) {
  StreamClock clock = Begun();
  clock.OweSince(kStart + kTimeout);
  const absl::Time over = kStart + kTimeout + StreamClock::kHungAfter;
  EXPECT_FALSE(clock.IsHung(over, clock.owed_since()));
  EXPECT_TRUE(clock.IsHung(over + kMoment, clock.owed_since()));
}

TEST(StreamClockTest, ALongTimeoutIsTheStreamsToo) {
  EXPECT_EQ(Begun(absl::Seconds(30)).HungAfter(), absl::Seconds(30));
}

TEST(StreamClockTest, TheFirstDebtCounts) {
  StreamClock clock = Begun();
  clock.OweSince(kStart);
  clock.OweSince(kStart + kTimeout);
  EXPECT_EQ(clock.owed_since(), kStart);
}

TEST(StreamClockTest, AnAnswerPaysTheDebt) {
  StreamClock clock = Begun();
  clock.OweSince(kStart);
  clock.OnAnswer(kStart + absl::Seconds(4));
  EXPECT_EQ(clock.owed_since(), absl::InfiniteFuture());
  EXPECT_EQ(clock.flow_time(), kStart + absl::Seconds(4));
}

TEST(StreamClockTest, AFrameTakenIsASignOfLifeButNoAnswer) {
  StreamClock clock = Begun();
  clock.OweSince(kStart);
  clock.OnSent(kStart + absl::Seconds(4));
  clock.OnTaken(kStart + absl::Seconds(4));
  EXPECT_FALSE(clock.IsHung(kStart + absl::Seconds(9), clock.owed_since()));
  EXPECT_TRUE(clock.IsHung(kStart + absl::Seconds(9) + kMoment, clock.owed_since()));
}

TEST(StreamClockTest, WhatTheBuffersHoldMayTakeLonger) {
  StreamClock clock = Begun();
  clock.OnSent(kStart);
  clock.OnTaken(kStart + absl::Seconds(10));
  EXPECT_LT(clock.frame_bytes(), kFrame);
  EXPECT_GT(clock.HungAfter(), absl::Seconds(50)) << "5 MiB at 100 kB/s";
}

TEST(StreamClockTest, AFrameThatHungSaysThatTheLinkIsSlow) {
  StreamClock clock = Begun();
  clock.OnSent(kStart);
  clock.OnHung(kStart + absl::Seconds(10), /*is_taking=*/false);
  EXPECT_EQ(clock.frame_bytes(), kFrame) << "none was under way";
  clock.OnHung(kStart + absl::Seconds(10), /*is_taking=*/true);
  EXPECT_LT(clock.frame_bytes(), kFrame);
}

TEST(StreamClockTest, AnOpeningHangsByItself) {
  StreamClock clock = Begun();
  EXPECT_FALSE(clock.IsHung(kStart + StreamClock::kHungAfter));
  EXPECT_TRUE(clock.IsHung(kStart + StreamClock::kHungAfter + kMoment));
  clock.Excuse(kStart + absl::Seconds(5));
  EXPECT_FALSE(clock.IsHung(kStart + StreamClock::kHungAfter + kMoment));
}

TEST(StreamClockTest, ItMayGoOnWhileItFlowsOrHasJustBeenAsked) {
  const StreamClock clock = Begun();
  const absl::Time late = kStart + StreamClock::kHungAfter;
  EXPECT_TRUE(clock.MayGoOn(late - kMoment, kStart));
  EXPECT_FALSE(clock.MayGoOn(late, kStart));
  EXPECT_TRUE(clock.MayGoOn(late, kStart + absl::Seconds(3)));
}

TEST(StreamClockTest, AThirdOfTheLeaseAfterTheLastFrameAKeepAliveIsDue) {
  StreamClock clock = Begun();
  clock.OnSent(kStart);
  EXPECT_FALSE(clock.KeepAliveIsDue(kStart + absl::Hours(1))) << "a lease without an end";
  clock.OnOpened(absl::Seconds(30));
  EXPECT_FALSE(clock.KeepAliveIsDue(kStart + absl::Seconds(10)));
  EXPECT_TRUE(clock.KeepAliveIsDue(kStart + absl::Seconds(10) + kMoment));
}

}  // namespace
}  // namespace h5mirror::vfd
