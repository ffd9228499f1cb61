#include "client_vfd/session/state/owner_search.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Told = OwnerSearch::Told;
using Wait = OwnerSearch::Wait;

constexpr absl::Duration kMoment = absl::Milliseconds(1);
constexpr absl::Duration kJitter = absl::Milliseconds(30);
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);
const absl::Time kSilent = kStart + OwnerSearch::kSilentAfter;

OwnerSearch Waiting(Wait wait) {
  OwnerSearch search(kJitter);
  search.Begin();
  search.Look(wait, kStart);
  return search;
}

TEST(OwnerSearchTest, AServerThatOwesNothingMayBeSilent) {
  EXPECT_FALSE(Waiting(Wait::kNothing).IsDue(kStart + absl::Hours(1)));
}

TEST(OwnerSearchTest, OthersAreAskedAfterFiveSecondsOfSilence) {
  const OwnerSearch search = Waiting(Wait::kAnswer);
  EXPECT_FALSE(search.IsDue(kSilent - kMoment));
  EXPECT_TRUE(search.IsDue(kSilent));
}

TEST(OwnerSearchTest, AStreamThatIsNotTakenOrInDoubtIsLookedAfterSoon) {
  for (const Wait wait : {Wait::kOpening, Wait::kDoubt}) {
    const OwnerSearch search = Waiting(wait);
    EXPECT_FALSE(search.IsDue(kStart + OwnerSearch::kShortAfter - kMoment));
    EXPECT_TRUE(search.IsDue(kStart + OwnerSearch::kShortAfter));
  }
}

TEST(OwnerSearchTest, DoubtEndsNoSilence) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  search.Look(Wait::kDoubt, kStart + absl::Seconds(2));
  EXPECT_TRUE(search.IsDue(kStart + absl::Seconds(2))) << "at once, after 2 s of silence";
  search.Look(Wait::kAnswer, kStart + absl::Seconds(3));
  EXPECT_FALSE(search.IsDue(kSilent - kMoment));
  EXPECT_TRUE(search.IsDue(kSilent));
}

TEST(OwnerSearchTest, AnAnswerBeginsTheSilenceAnew) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  search.OnAnswer(kStart + absl::Seconds(3));
  EXPECT_FALSE(search.IsDue(kSilent));
  EXPECT_TRUE(search.IsDue(kSilent + absl::Seconds(3)));
}

TEST(OwnerSearchTest, WhatIsOwedLaterIsWaitedForFromThenOn) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  search.Look(Wait::kNothing, kStart + absl::Seconds(1));
  search.Look(Wait::kAnswer, kStart + absl::Minutes(1));
  search.Look(Wait::kAnswer, kStart + absl::Minutes(1) + absl::Seconds(2));
  EXPECT_FALSE(search.IsDue(kStart + absl::Minutes(1)));
  EXPECT_TRUE(search.IsDue(kStart + absl::Minutes(1) + OwnerSearch::kSilentAfter));
}

TEST(OwnerSearchTest, OneQuestionIsUnderWayAtATime) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  const uint64_t number = search.Ask();
  EXPECT_FALSE(search.IsDue(kSilent + absl::Minutes(1)));
  EXPECT_TRUE(search.Take(number));
  EXPECT_FALSE(search.Take(number)) << "each once";
}

TEST(OwnerSearchTest, AServerThatStillHasTheFileIsAskedForEachSecond) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  ASSERT_TRUE(search.Take(search.Ask()));
  search.OnTold(Told::kSame, kSilent);
  const absl::Time again = kSilent + OwnerSearch::kSameAgain + kJitter;
  EXPECT_FALSE(search.IsDue(again - kMoment));
  EXPECT_TRUE(search.IsDue(again));
}

TEST(OwnerSearchTest, AFileThatNobodyHasIsAskedForMoreOften) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  ASSERT_TRUE(search.Take(search.Ask()));
  search.OnTold(Told::kNobody, kSilent);
  const absl::Time again = kSilent + OwnerSearch::kNobodyAgain + kJitter;
  EXPECT_FALSE(search.IsDue(again - kMoment));
  EXPECT_TRUE(search.IsDue(again));
}

TEST(OwnerSearchTest, AServerThatWasNamedIsAskedAtOnce) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  ASSERT_TRUE(search.Take(search.Ask()));
  search.OnTold(Told::kOther, kSilent);
  EXPECT_TRUE(search.IsDue(kSilent));
  EXPECT_EQ(search.turn(), 1u);
}

TEST(OwnerSearchTest, AnAnswerForAnEarlierStreamCountsNoMore) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  const uint64_t number = search.Ask();
  search.Begin();
  EXPECT_FALSE(search.Take(number));
  search.Look(Wait::kOpening, kSilent);
  const uint64_t next = search.Ask();
  EXPECT_FALSE(search.Take(number));
  EXPECT_TRUE(search.Take(next));
}

TEST(OwnerSearchTest, AnOpeningThatIsSlowIsGivenMoreTimeEachTime) {
  OwnerSearch search(kJitter);
  absl::Duration patience = OwnerSearch::kShortAfter;
  absl::Time now = kStart;
  for (int move = 0; move < 10; ++move) {
    search.Begin();
    search.Look(Wait::kNothing, now);
    search.Look(Wait::kOpening, now);
    EXPECT_FALSE(search.IsDue(now + patience - kMoment));
    ASSERT_TRUE(search.IsDue(now += patience));
    search.OnLeft();
    patience = std::min(2 * patience, OwnerSearch::kSilentAfter);
  }
  EXPECT_EQ(patience, OwnerSearch::kSilentAfter);
  search.OnOpened();
  search.Look(Wait::kNothing, now);
  search.Look(Wait::kOpening, now);
  EXPECT_TRUE(search.IsDue(now + OwnerSearch::kShortAfter));
}

TEST(OwnerSearchTest, AStreamThatWasTakenIsLeftWithoutMoreTimeForTheNext) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  search.OnLeft();
  search.Begin();
  search.Look(Wait::kOpening, kSilent);
  EXPECT_TRUE(search.IsDue(kSilent + OwnerSearch::kShortAfter));
}

TEST(OwnerSearchTest, ServersThatGiveNoAnswerAreAskedLessOften) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  absl::Time now = kSilent;
  absl::Duration pause = OwnerSearch::kNobodyAgain;
  for (int question = 0; question < 6; ++question) {
    ASSERT_TRUE(search.Take(search.Ask()));
    search.OnTold(Told::kSilent, now);
    EXPECT_FALSE(search.IsDue(now + pause + kJitter - kMoment));
    ASSERT_TRUE(search.IsDue(now += pause + kJitter));
    pause = std::min(2 * pause, OwnerSearch::kSilentAgainMax);
  }
  EXPECT_EQ(pause, OwnerSearch::kSilentAgainMax);
  search.OnTold(Told::kNobody, now);
  search.OnTold(Told::kSilent, now);
  EXPECT_TRUE(search.IsDue(now + OwnerSearch::kNobodyAgain + kJitter)) << "an answer came between";
}

TEST(OwnerSearchTest, QuestionsThatCannotSucceedEnd) {
  OwnerSearch search = Waiting(Wait::kAnswer);
  absl::Time now = kSilent;
  for (int refusal = 0; refusal < OwnerSearch::kRefusalsMax; ++refusal) {
    ASSERT_TRUE(search.IsDue(now)) << "another server may answer";
    ASSERT_TRUE(search.Take(search.Ask()));
    search.OnTold(Told::kRefused, now);
    now += OwnerSearch::kSameAgain + kJitter;
  }
  EXPECT_FALSE(search.IsDue(now + absl::Hours(1)));
  search.Begin();
  search.Look(Wait::kNothing, now);
  search.Look(Wait::kAnswer, now);
  EXPECT_TRUE(search.IsDue(now + OwnerSearch::kSilentAfter)) << "of the next stream";
}

TEST(ServerRoundsTest, AfterALossTheNextAttemptBeginsAtOnce) {
  ServerRounds rounds(kJitter);
  EXPECT_EQ(rounds.Next(1, kStart), kStart);
  rounds.OnAck();
  EXPECT_EQ(rounds.Next(1, kStart + absl::Minutes(1)), kStart + absl::Minutes(1));
}

TEST(ServerRoundsTest, ARoundAsksEachServerOnce) {
  ServerRounds rounds(kJitter);
  absl::Time now = kStart;
  EXPECT_EQ(rounds.Next(3, now), now);
  for (int round = 0; round < 3; ++round) {
    const absl::Time begun_at = now;
    EXPECT_EQ(rounds.Next(3, now), now);
    EXPECT_EQ(rounds.Next(3, now += kMoment), now);
    EXPECT_EQ(rounds.Next(3, now += kMoment), begun_at + ServerRounds::kEvery + kJitter);
    now = begun_at + ServerRounds::kEvery + kJitter;
  }
}

TEST(ServerRoundsTest, ALongListIsAskedInParts) {
  ServerRounds rounds(kJitter);
  ASSERT_EQ(rounds.Next(32, kStart), kStart);
  for (size_t i = 1; i < ServerRounds::kAttemptsMax; ++i)
    EXPECT_EQ(rounds.Next(32, kStart), kStart);
  EXPECT_GT(rounds.Next(32, kStart), kStart);
}

TEST(ServerRoundsTest, ASlowRoundIsFollowedByTheNextAtOnce) {
  ServerRounds rounds(kJitter);
  ASSERT_EQ(rounds.Next(2, kStart), kStart);
  ASSERT_EQ(rounds.Next(2, kStart), kStart);
  EXPECT_EQ(rounds.Next(2, kStart + absl::Seconds(4)), kStart + absl::Seconds(4));
}

// Rounds of two servers from `now` to `end`; returns how many began.
int RoundsUntil(ServerRounds& rounds, absl::Time& now, absl::Time end) {
  int count = 0;
  for (; now < end; ++count) {
    EXPECT_EQ(rounds.Next(2, now), now);
    now = rounds.Next(2, now);
  }
  return count;
}

TEST(ServerRoundsTest, ALossThatLastsIsHurriedForNoMore) {
  ServerRounds rounds(kJitter);
  absl::Time now = kStart;
  ASSERT_EQ(rounds.Next(2, now), now);
  const absl::Time slow_from = kStart + ServerRounds::kHurryFor;
  EXPECT_EQ(RoundsUntil(rounds, now, slow_from),
            ServerRounds::kHurryFor / (ServerRounds::kEvery + kJitter) + 1);
  RoundsUntil(rounds, now, slow_from + absl::Minutes(1));
  EXPECT_LE(RoundsUntil(rounds, now, now + absl::Hours(1)),
            absl::Hours(1) / ServerRounds::kEveryMax);
}

TEST(ServerRoundsTest, AServerThatTakesTheStreamAndLosesItIsNoEndOfTheLoss) {
  ServerRounds rounds(kJitter);
  absl::Time now = kStart;
  ASSERT_EQ(rounds.Next(1, now), now) << "the loss";
  for (int time = 0; time < 3; ++time) {
    rounds.OnOpened(now);
    const absl::Time next = rounds.Next(1, now);
    EXPECT_EQ(next, now + ServerRounds::kEvery + kJitter);
    now = next;
  }
  rounds.OnAck();
  EXPECT_EQ(rounds.Next(1, now), now);
}

TEST(ServerRoundsTest, AnIdleStreamThatWasThereForLongIsANewLoss) {
  ServerRounds rounds(kJitter);
  ASSERT_EQ(rounds.Next(1, kStart), kStart);
  ASSERT_GT(rounds.Next(1, kStart), kStart);
  rounds.OnOpened(kStart);
  const absl::Time later = kStart + ServerRounds::kHeldFor;
  EXPECT_EQ(rounds.Next(1, later), later);
}

}  // namespace
}  // namespace h5mirror::vfd
