#include "client_vfd/session/state/pacing.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

constexpr uint64_t kFrame = 1 << 20;
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

// What goes out from `from` on, asked for every 100 ms, as the sender does.
uint64_t SentWithin(Pacing& pacing, absl::Time from, absl::Duration duration) {
  uint64_t sent = 0;
  for (absl::Time now = from; now < from + duration; now += absl::Milliseconds(100)) {
    while (const uint64_t bytes = pacing.Allowed(kFrame, now)) {
      pacing.Sent(bytes);
      sent += bytes;
    }
  }
  return sent;
}

TEST(PacingTest, NoLimitAllowsAll) {
  Pacing pacing(0);
  for (int n = 0; n < 1000; ++n) {
    EXPECT_EQ(pacing.Allowed(kFrame, kStart), kFrame);
    pacing.Sent(kFrame);
  }
}

TEST(PacingTest, TheRateIsKept) {
  for (const uint64_t rate : {uint64_t{10'000}, uint64_t{1'000'000}, uint64_t{200'000'000}}) {
    Pacing pacing(rate);
    const uint64_t sent = SentWithin(pacing, kStart, absl::Seconds(20));
    EXPECT_GE(sent, 19 * rate) << rate;
    EXPECT_LE(sent, 21 * rate) << rate;
  }
}

TEST(PacingTest, APauseIsNotMadeUpFor) {
  Pacing pacing(1'000'000);
  SentWithin(pacing, kStart, absl::Seconds(1));
  EXPECT_LE(SentWithin(pacing, kStart + absl::Hours(1), absl::Milliseconds(50)), 250'000u);
}

TEST(PacingTest, ItKnowsThatItHeldBack) {
  Pacing pacing(1'000'000);
  EXPECT_FALSE(pacing.held_back());
  SentWithin(pacing, kStart, absl::Milliseconds(50));
  EXPECT_TRUE(pacing.held_back());
  EXPECT_GT(pacing.Allowed(kFrame, kStart + absl::Hours(1)), 0u);
  EXPECT_FALSE(pacing.held_back());
}

TEST(PacingTest, AClockThatGoesBackLetsNothingIn) {
  Pacing pacing(1'000'000);
  SentWithin(pacing, kStart, absl::Milliseconds(50));
  EXPECT_EQ(pacing.Allowed(kFrame, kStart - absl::Hours(1)), 0u);
  EXPECT_EQ(pacing.Allowed(kFrame, kStart - absl::Hours(1) + absl::Milliseconds(1)), 0u);
  EXPECT_GT(pacing.Allowed(kFrame, kStart - absl::Hours(1) + absl::Milliseconds(200)), 0u);
}

TEST(FrameSizeTest, ASlowLinkGetsWhatItTakesInHalfASecond) {
  FrameSize size(1 << 20);
  EXPECT_EQ(size.bytes(), 1u << 20);
  EXPECT_EQ(size.BuffersTake(), absl::ZeroDuration());
  size.Took(absl::Seconds(10));
  EXPECT_NEAR(static_cast<double>(size.bytes()), (1 << 20) / 20, 1);
  // What was sent before is on its way for a while: 5 MiB at 100 kB/s.
  EXPECT_NEAR(absl::ToDoubleSeconds(size.BuffersTake()), 50, 1);
}

TEST(FrameSizeTest, AFastLinkGetsWholeFramesAgain) {
  FrameSize size(1 << 20);
  size.Took(absl::Hours(1));
  EXPECT_EQ(size.bytes(), 16u << 10) << "never a trickle";
  size.Took(absl::Milliseconds(500));
  EXPECT_EQ(size.bytes(), 16u << 10);
  for (int i = 0; i < 10; ++i) size.Took(absl::Milliseconds(1));
  EXPECT_EQ(size.bytes(), 1u << 20);
}

}  // namespace
}  // namespace h5mirror::vfd
