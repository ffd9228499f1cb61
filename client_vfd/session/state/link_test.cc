#include "client_vfd/session/state/link.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Answer = Link::Answer;
using Phase = Link::Phase;

constexpr absl::Duration kMoment = absl::Milliseconds(1);
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);
const StreamClaim kAsks;
const StreamClaim kSendsEarly{.resume = false, .base_cut = 0, .may_send_early = true};
const StreamClaim kResumes{.resume = true, .base_cut = 3, .may_send_early = false};

TEST(LinkTest, AStreamOpensAndEnds) {
  Link link;
  EXPECT_TRUE(link.is_none());
  EXPECT_EQ(link.Begin(kAsks, kStart), 1u);
  EXPECT_EQ(link.phase(), Phase::kOpening);
  EXPECT_FALSE(link.may_send());
  link.OnOpened();
  EXPECT_TRUE(link.is_open());
  EXPECT_TRUE(link.may_send());
  link.End();
  EXPECT_TRUE(link.is_none());
  EXPECT_FALSE(link.may_send());
  EXPECT_EQ(link.Begin(kResumes, kStart), 2u);
  EXPECT_TRUE(link.resumes());
}

TEST(LinkTest, SomeClaimsAreFollowedByDataAtOnce) {
  Link link;
  link.Begin(kSendsEarly, kStart);
  EXPECT_TRUE(link.is_opening());
  EXPECT_TRUE(link.may_send());
  EXPECT_FALSE(link.is_open());
  link.Lose(kStart);
  EXPECT_FALSE(link.may_send());
}

TEST(LinkTest, HavingBeenOpenedIsNotForgotten) {
  Link link;
  link.Begin(kAsks, kStart);
  EXPECT_FALSE(link.ever_opened());
  link.OnOpened();
  link.Lose(kStart);
  EXPECT_TRUE(link.ever_opened());
}

TEST(LinkTest, ASessionConnectsAtOnceAndThenNowAndThen) {
  Link link;
  EXPECT_TRUE(link.MayBegin(kStart, /*is_wanted=*/false));
  link.Begin(kAsks, kStart);
  link.Lose(kStart);
  EXPECT_FALSE(link.MayBegin(kStart + Link::kRetryEvery - kMoment, true));
  EXPECT_TRUE(link.MustWait(kStart + Link::kRetryEvery - kMoment));
  EXPECT_TRUE(link.MayBegin(kStart + Link::kRetryEvery, true));
  EXPECT_FALSE(link.MayBegin(kStart + Link::kRetryEvery, false)) << "nothing to send";
  EXPECT_FALSE(link.MustWait(kStart + Link::kRetryEvery));
}

TEST(LinkTest, AServerThatWasNeverThereIsAskedLessAndLess) {
  Link link;
  link.Begin(kAsks, kStart);
  absl::Duration rest = Link::kRetryEvery;
  for (int attempt = 0; attempt < 10; ++attempt) {
    link.Lose(kStart);
    link.Rest(kStart);
    EXPECT_FALSE(link.MayBegin(kStart + rest - kMoment, true));
    EXPECT_TRUE(link.MayBegin(kStart + rest, true));
    rest = std::min(2 * rest, Link::kRestMax);
  }
  link.EndRest();
  EXPECT_TRUE(link.MayBegin(kStart + Link::kRetryEvery, true)) << "the program asks";
  link.Rest(kStart);
  link.Hurry();
  EXPECT_TRUE(link.MayBegin(kStart, true));
}

TEST(LinkTest, HurryCountsForOneAttempt) {
  Link link;
  link.Begin(kAsks, kStart);
  link.Lose(kStart);
  link.Hurry();
  EXPECT_TRUE(link.MayBegin(kStart, false));
  EXPECT_FALSE(link.MustWait(kStart));
  link.Begin(kAsks, kStart);
  link.Lose(kStart);
  EXPECT_FALSE(link.MayBegin(kStart, true));
}

TEST(LinkTest, AnotherSessionsRetryTimeCounts) {
  Link link;
  link.TakeOverRetry(kStart + absl::Seconds(1));
  EXPECT_FALSE(link.MayBegin(kStart, true));
  EXPECT_TRUE(link.MayBegin(kStart + absl::Seconds(1), true));
}

TEST(LinkTest, AStreamThatWasLeftIsResumedAtOnceIfItWasThere) {
  Link link;
  link.Begin(kAsks, kStart);
  EXPECT_TRUE(link.Leave());
  EXPECT_TRUE(link.MayBegin(kStart, false));
  EXPECT_FALSE(link.Leave()) << "there was none";
  EXPECT_FALSE(link.MayBegin(kStart, true));
}

TEST(LinkTest, AProgramThatAwaitsTheServerWantsAStream) {
  Link link;
  link.Begin(kAsks, kStart);
  link.Lose(kStart);
  const absl::Time later = kStart + absl::Hours(1);
  EXPECT_FALSE(link.MayBegin(later, false));
  link.SetAwaited(true);
  EXPECT_FALSE(link.MayBegin(kStart, false)) << "not before its time";
  EXPECT_TRUE(link.MayBegin(later, false));
  link.SetAwaited(false);
  EXPECT_FALSE(link.MayBegin(later, false));
}

TEST(LinkTest, AnAnswerCountsForItsStream) {
  Link link;
  link.Begin(kAsks, kStart);
  link.OnAnswer(Answer::kLostBase);
  link.Lose(kStart);
  EXPECT_EQ(link.answer(), Answer::kLostBase);
  link.Begin(kAsks, kStart);
  EXPECT_EQ(link.answer(), Answer::kNone);
}

TEST(LinkTest, ABusyFileIsToldOfWhenItsStreamHasEnded) {
  Link link;
  link.Begin(kAsks, kStart);
  link.OnBusy("anna writes it");
  EXPECT_FALSE(link.was_busy());
  link.End();
  EXPECT_TRUE(link.was_busy());
  EXPECT_EQ(link.holder(), "anna writes it");
  link.Begin(kAsks, kStart);
  EXPECT_TRUE(link.was_busy()) << "it tells why the open took so long";
}

TEST(LinkTest, ACancelIsTakenOnceAndEndsWithTheNextStream) {
  Link link;
  link.Cancel();
  EXPECT_TRUE(link.is_cancelled());
  EXPECT_TRUE(link.TakeCancel());
  EXPECT_FALSE(link.TakeCancel());
  link.Cancel();
  link.Begin(kAsks, kStart);
  EXPECT_FALSE(link.is_cancelled());
}

TEST(LinkTest, ARefusedSessionBeginsAtOnceWithAnotherToken) {
  Link link;
  link.Begin(kAsks, kStart);
  link.End();
  link.Lose(kStart);
  link.Refuse();
  EXPECT_TRUE(link.is_refused());
  EXPECT_FALSE(link.MayBegin(kStart, /*is_wanted=*/true));
  link.TryAgain();
  EXPECT_FALSE(link.is_refused());
  EXPECT_TRUE(link.MayBegin(kStart, /*is_wanted=*/false));
}

TEST(LinkTest, TheFinalCutIsTriedEightTimes) {
  Link link;
  for (int attempt = 0; attempt < Link::kFinalAttemptsMax; ++attempt) {
    EXPECT_TRUE(link.TakeFinalAttempt()) << attempt;
  }
  EXPECT_FALSE(link.TakeFinalAttempt());
}

TEST(LinkTest, AServerWithoutRoomIsAskedLessAndLessOften) {
  Link link;
  absl::Time now = kStart;
  absl::Duration expected = Link::kRetryEvery;
  for (int i = 0; i < 8; ++i) {
    link.Begin(kAsks, now);
    link.End();
    link.OnFull();
    link.Lose(now);
    EXPECT_TRUE(link.is_full());
    EXPECT_EQ(link.retry_time(), now + expected);
    EXPECT_FALSE(link.MayBegin(link.retry_time() - kMoment, true));
    now = link.retry_time();
    expected = std::min(2 * expected, Link::kFullRetryMax);
  }
  link.Begin(kAsks, now);
  link.OnOpened();
  EXPECT_FALSE(link.is_full());
  link.Lose(now);
  EXPECT_EQ(link.retry_time(), now + Link::kRetryEvery);
}

}  // namespace
}  // namespace h5mirror::vfd
