#include "client_vfd/session/state/program_clock.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr absl::Duration kNoLinger = absl::ZeroDuration();
constexpr uint64_t kLeft = 1000;  // bytes, when the call begins
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

ProgramClock ClockOf(absl::Duration outage_wait) {
  return ProgramClock({kPatience, absl::Seconds(60), outage_wait}, kStart);
}

// A program that would rather degrade than wait, as it begins a call.
class WaitTest : public testing::Test {
 protected:
  WaitTest() { clock_.BeginWait(kStart, kLeft); }

  Wait Begin(absl::Duration linger) { return Wait(clock_, kStart, kPatience, linger); }
  // So long after the call's beginning `left_bytes` are still to be sent.
  Wait::Look LookAfter(Wait& wait, absl::Duration after, uint64_t left_bytes) {
    return wait.At(kStart + after, [&] { return left_bytes; });
  }
  void ProgressAfter(absl::Duration after) { clock_.Progress(kStart + after); }

  ProgramClock clock_ = ClockOf(absl::ZeroDuration());
};

TEST_F(WaitTest, ASilentServerIsWaitedForAsLongAsPatienceLasts) {
  Wait wait = Begin(kNoLinger);
  const Wait::Look look = LookAfter(wait, kSecond, kLeft);
  EXPECT_EQ(look.ended, std::nullopt);
  EXPECT_EQ(look.again, kStart + kPatience);
  EXPECT_EQ(LookAfter(wait, kPatience, kLeft).ended, Waited::kSilent);
}

TEST_F(WaitTest, WithoutLingerACallWaitsNoLongerThanItsPatience) {
  Wait wait = Begin(kNoLinger);
  ProgressAfter(kSecond);
  EXPECT_EQ(LookAfter(wait, kPatience, kLeft / 2).ended, Waited::kTooSlow);
}

TEST_F(WaitTest, ACloseGoesOnWhileTheRestWillBeThereInTime) {
  Wait wait = Begin(10 * kSecond);
  for (int second = 1; second <= 2; ++second) ProgressAfter(second * kSecond);
  // 200 bytes took 2 s: the other 800 take 8 s more.
  const Wait::Look look = LookAfter(wait, 2 * kSecond, kLeft - 200);
  EXPECT_EQ(look.ended, std::nullopt);
  EXPECT_EQ(look.again, kStart + 4 * kSecond) << "the next look at the rate";
}

TEST_F(WaitTest, ACloseEndsWhereTheRestComesTooLate) {
  Wait wait = Begin(10 * kSecond);
  for (int second = 1; second <= 2; ++second) ProgressAfter(second * kSecond);
  EXPECT_EQ(LookAfter(wait, 2 * kSecond, kLeft - 100).ended, Waited::kTooSlow);
}

TEST_F(WaitTest, TheRateIsThatOfTheTimeSinceTheLastLook) {
  Wait wait = Begin(20 * kSecond);
  ProgressAfter(2 * kSecond);
  EXPECT_EQ(LookAfter(wait, 2 * kSecond, kLeft / 2).ended, std::nullopt);
  ProgressAfter(4 * kSecond);
  EXPECT_EQ(LookAfter(wait, 4 * kSecond, kLeft / 2).ended, Waited::kTooSlow) << "nothing went";
}

TEST_F(WaitTest, ALingeringCallStillHearsSilence) {
  Wait wait = Begin(60 * kSecond);
  ProgressAfter(2 * kSecond);
  EXPECT_EQ(LookAfter(wait, 2 * kSecond, kLeft / 2).ended, std::nullopt);
  EXPECT_EQ(LookAfter(wait, 4 * kSecond, kLeft / 2).ended, Waited::kSilent);
}

TEST_F(WaitTest, AProgramThatRidesOutTakesAnyRate) {
  ProgramClock clock = ClockOf(absl::Hours(1));
  clock.BeginWait(kStart, kLeft);
  Wait wait(clock, kStart, kPatience, kNoLinger);
  const auto left = [] { return kLeft; };
  clock.Progress(kStart + absl::Minutes(5));
  const Wait::Look look = wait.At(kStart + absl::Minutes(5), left);
  EXPECT_EQ(look.ended, std::nullopt);
  EXPECT_EQ(look.again, kStart + absl::Minutes(5) + kPatience);
  EXPECT_EQ(wait.At(look.again, left).ended, Waited::kSilent);
}

TEST(ProgramClockTest, PatienceIsTheTimeoutAndShortWithASuspect) {
  const ProgramClock clock = ClockOf(absl::ZeroDuration());
  EXPECT_EQ(clock.Patience(false), kPatience);
  EXPECT_EQ(clock.Patience(true), absl::Milliseconds(300));
}

TEST(ProgramClockTest, AProgramThatRidesOutWaitsForASlowAnswerToo) {
  EXPECT_EQ(ClockOf(absl::Seconds(3)).Patience(false), absl::Seconds(3));
  EXPECT_EQ(ClockOf(absl::Hours(1)).Patience(false), absl::Seconds(5));
}

TEST(ProgramClockTest, ALongHandingOverLeavesTimeToSync) {
  ProgramClock clock = ClockOf(absl::ZeroDuration());
  clock.BeginClose(kStart);
  clock.OnHandedOver(kStart + kSecond, kPatience);
  EXPECT_EQ(clock.close_time(), kStart) << "it was short";
  clock.OnHandedOver(kStart + 10 * kSecond, kPatience);
  EXPECT_EQ(clock.close_time(), kStart + 10 * kSecond);
  EXPECT_EQ(clock.CloseEnds(kPatience), kStart + 70 * kSecond);
}

TEST(ProgramClockTest, AnOutageThatWasFoundLateBeganBefore) {
  ProgramClock clock = ClockOf(absl::Minutes(1));
  clock.Progress(kStart);
  const absl::Time found = kStart + absl::Seconds(40);
  EXPECT_EQ(clock.OutageEnds(found, kPatience), kStart + kPatience + absl::Minutes(1));
  EXPECT_EQ(clock.OutageEnds(kStart + kSecond, kPatience), kStart + kSecond + absl::Minutes(1));
}

}  // namespace
}  // namespace h5mirror::vfd
