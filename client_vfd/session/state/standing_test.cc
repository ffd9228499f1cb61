#include "client_vfd/session/state/standing.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Audience = Standing::Audience;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

TEST(StandingTest, TheUserHearsOfAnOutageOnce) {
  Standing standing;
  EXPECT_EQ(standing.GoBehind("no answer", Audience::kUser, kStart), Audience::kUser);
  EXPECT_EQ(standing.GoBehind("no answer", Audience::kUser, kStart), Audience::kNobody);
  EXPECT_TRUE(standing.user_knows());
}

TEST(StandingTest, WhatIsTriedAgainAtOnceOnlyTheProgramHears) {
  Standing standing;
  EXPECT_EQ(standing.GoBehind("the stream ended", Audience::kProgram, kStart), Audience::kProgram);
  EXPECT_EQ(standing.GoBehind("the stream ended", Audience::kProgram, kStart), Audience::kNobody);
  EXPECT_FALSE(standing.user_knows());
  EXPECT_EQ(standing.GoBehind("no answer", Audience::kUser, kStart), Audience::kUser)
      << "it was not back at once";
}

TEST(StandingTest, TheNextOutageIsNews) {
  Standing standing;
  standing.GoBehind("no answer", Audience::kUser, kStart);
  standing.OnOpened();
  EXPECT_TRUE(standing.is_mirroring());
  EXPECT_EQ(standing.detail(), "");
  EXPECT_EQ(standing.behind_since(), absl::InfinitePast());
  EXPECT_EQ(standing.GoBehind("no answer", Audience::kUser, kStart), Audience::kUser);
}

TEST(StandingTest, AnOutageBeginsWithItsFirstLoss) {
  Standing standing;
  standing.GoBehind("the stream ended", Audience::kProgram, kStart);
  standing.GoBehind("no answer", Audience::kUser, kStart + absl::Seconds(5));
  EXPECT_EQ(standing.behind_since(), kStart);
  EXPECT_EQ(standing.detail(), "no answer");
}

TEST(StandingTest, DivergedStaysDiverged) {
  Standing standing;
  standing.Diverge("another file");
  EXPECT_EQ(standing.GoBehind("no answer", Audience::kUser, kStart), Audience::kNobody);
  EXPECT_TRUE(standing.is_diverged());
  EXPECT_EQ(standing.detail(), "another file");
}

TEST(StandingTest, AnEndBehindIsNoOutage) {
  Standing standing;
  standing.OnOpened();
  standing.EndBehind("not confirmed");
  EXPECT_TRUE(standing.is_behind());
  EXPECT_EQ(standing.detail(), "not confirmed");
  EXPECT_EQ(standing.behind_since(), absl::InfinitePast());
}

TEST(StandingTest, AnExplanationStaysTheFirst) {
  Standing standing;
  standing.Explain("first");
  standing.Explain("second");
  EXPECT_EQ(standing.detail(), "first");
}

TEST(StandingTest, ResyncingIsAKindOfMirroring) {
  Standing standing;
  EXPECT_EQ(standing.Told(true), H5M_STATE_CONNECTING);
  standing.OnOpened();
  EXPECT_EQ(standing.Told(false), H5M_STATE_MIRRORING);
  EXPECT_EQ(standing.Told(true), H5M_STATE_RESYNCING);
  standing.GoBehind("no answer", Audience::kProgram, kStart);
  EXPECT_EQ(standing.Told(true), H5M_STATE_BEHIND);
  standing.EndClean();
  EXPECT_EQ(standing.Told(false), H5M_STATE_CLEAN);
  standing.Diverge("another file");
  EXPECT_EQ(standing.Told(false), H5M_STATE_DIVERGED);
}

}  // namespace
}  // namespace h5mirror::vfd
