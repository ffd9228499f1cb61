#include "client_vfd/session/state/owner_search.h"

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

TEST(ServerRoundsTest, AfterALossTheNextAttemptBeginsAtOnce) {
  ServerRounds rounds(kJitter);
  EXPECT_EQ(rounds.Next(1, kStart), kStart);
  rounds.OnOpened();
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

}  // namespace
}  // namespace h5mirror::vfd
