#include "client_vfd/session/state/mirror_base.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Heritage = MirrorBase::Heritage;

constexpr Bytes16 kBefore{1};  // the session before
constexpr uint64_t kNoBarrier = 0;

Relation Continues(int64_t base_cut) {
  Relation relation;
  relation.claim = Claim::kContinue;
  relation.base_cut = base_cut;
  return relation;
}

// A session that goes on from cut 7, of a session that is durable up to cut 5.
MirrorBase Following() {
  MirrorBase base;
  base.Inherit(Continues(7), /*base_cut=*/5, /*cut_seen=*/7, /*from=*/1, Heritage::kFollows);
  base.SetPredecessor(kBefore);
  return base;
}

TEST(MirrorBaseTest, OnlyWhatGoesOnHasABase) {
  MirrorBase base;
  base.Claim(Continues(5));
  EXPECT_EQ(base.base_cut(), 5);
  EXPECT_TRUE(base.IsExact());
  Relation created;
  created.claim = Claim::kCreate;
  created.base_cut = 5;
  base.Claim(created);
  EXPECT_EQ(base.base_cut(), 0);
}

TEST(MirrorBaseTest, EachDurableCutIsTheNextBase) {
  MirrorBase base;
  base.Claim(Continues(5));
  base.OnVisible(6);
  EXPECT_EQ(base.base_cut(), 5);
  EXPECT_EQ(base.cut_seen(), 6);
  base.OnDurable(6, /*version=*/2);
  EXPECT_EQ(base.base_cut(), 6);
  EXPECT_EQ(base.cut(), 6);
  EXPECT_EQ(base.version(), 2);
  base.OnDurable(7, /*version=*/0);
  EXPECT_EQ(base.version(), 2) << "that cut became none";
}

TEST(MirrorBaseTest, WhatItFollowsMayYetBeLost) {
  MirrorBase base = Following();
  EXPECT_FALSE(base.IsExact());
  EXPECT_FALSE(base.OnTaken(/*last_cut=*/7, /*durable_cut=*/5));
  EXPECT_EQ(base.base_cut(), 5) << "its changes are kept";
  EXPECT_EQ(base.inherited_from(), 1);
}

TEST(MirrorBaseTest, ADurableCutThatItFollowsIsTheBase) {
  MirrorBase base = Following();
  EXPECT_TRUE(base.OnTaken(/*last_cut=*/7, /*durable_cut=*/7));
  EXPECT_EQ(base.base_cut(), 7);
  EXPECT_EQ(base.heritage(), Heritage::kOwn);
  EXPECT_EQ(base.inherited_from(), 0);
}

TEST(MirrorBaseTest, ALostStreamSendsWhatItFollowedAgain) {
  MirrorBase base = Following();
  EXPECT_FALSE(base.NextClaim(kNoBarrier, true).resume);
  base.SendAgain();
  EXPECT_EQ(base.heritage(), Heritage::kFollowsAgain);
  EXPECT_TRUE(base.sends_inherited());
  const StreamClaim claim = base.NextClaim(kNoBarrier, true);
  EXPECT_TRUE(claim.resume);
  EXPECT_EQ(claim.base_cut, 5);
}

TEST(MirrorBaseTest, OwnChangesAreNotInheritedBySendingAgain) {
  MirrorBase base;
  base.Claim(Continues(5));
  base.SendAgain();
  EXPECT_EQ(base.heritage(), Heritage::kOwn);
}

TEST(MirrorBaseTest, AMapOfALossNowClaimsWhatCameWithTheOpen) {
  const MirrorBase base = Following();
  EXPECT_FALSE(base.NextClaim(kNoBarrier, false).resume);
  EXPECT_TRUE(base.ClaimIfLost(kNoBarrier, false).resume);
}

TEST(MirrorBaseTest, ADurableCutEndsTheHeritage) {
  MirrorBase base = Following();
  base.SendAgain();
  base.OnDurable(9, 1);
  EXPECT_EQ(base.heritage(), Heritage::kOwn);
  EXPECT_EQ(base.inherited_from(), 0);
  EXPECT_TRUE(base.followed_session() == kBefore);
}

TEST(MirrorBaseTest, AMapThatResumesIsSentOnTopOfItsBase) {
  MirrorBase base;
  base.Claim(Continues(-1));
  DirtyMap map;
  map.claim = DirtyMap::Claim::kResume;
  map.session_id = kBefore;
  map.base_cut = 5;
  map.cut_newest = 7;
  base.TakeUp(map);
  EXPECT_TRUE(base.took_up_map());
  EXPECT_EQ(base.heritage(), Heritage::kSends);
  EXPECT_EQ(base.cut_seen(), 7);
  EXPECT_TRUE(base.followed_session() == kBefore);
  EXPECT_TRUE(base.NextClaim(kNoBarrier, false).resume);
  base.OnDurable(8, 1);
  EXPECT_FALSE(base.took_up_map());
}

TEST(MirrorBaseTest, AMapOfAnUploadIsOfNobody) {
  MirrorBase base;
  DirtyMap map;
  map.claim = DirtyMap::Claim::kUpload;
  base.TakeUp(map);
  EXPECT_EQ(base.heritage(), Heritage::kOwn);
  EXPECT_TRUE(base.took_up_map());
  EXPECT_TRUE(base.followed_session() == Bytes16{});
}

TEST(MirrorBaseTest, ANewFileHasNoBase) {
  MirrorBase base;
  base.Claim(Continues(5));
  base.SetLevel(5, 2);
  base.OnVisible(6);
  base.OnNew();
  EXPECT_EQ(base.base_cut(), 0);
  EXPECT_EQ(base.cut_seen(), 0);
  base.BeginAsNewFile();
  EXPECT_EQ(base.cut(), 0);
  EXPECT_EQ(base.version(), 0);
  EXPECT_EQ(base.relation().claim, Claim::kUpload);
}

TEST(MirrorBaseTest, ALostGenerationIsBegunAgainOnce) {
  MirrorBase base;
  Relation relation;
  relation.claim = Claim::kReplace;
  base.Claim(relation);
  base.OnVisible(7);
  EXPECT_FALSE(base.HasLostGeneration(7)) << "it is there";
  EXPECT_TRUE(base.HasLostGeneration(6));
  base.BeginAgain();
  EXPECT_FALSE(base.HasLostGeneration(6));
  EXPECT_FALSE(base.NextClaim(/*last_seq=*/1, true).resume);
  base.OnOpened();
  EXPECT_TRUE(base.NextClaim(/*last_seq=*/1, true).resume);
}

}  // namespace
}  // namespace h5mirror::vfd
