#include "client_vfd/session/state/relation.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

class RelationTest : public testing::Test {
 protected:
  RelationTest() {
    facts_.stat_at_open = {7, 4096, 1, 1};
    facts_.server = "node7:7447";
    facts_.name = "run.h5";
    record_.state = RecordState::kClean;
    record_.server = facts_.server;
    record_.name = facts_.name;
    record_.file_id.fill(3);
    record_.cut = 12;
    record_.stat = facts_.stat_at_open;
  }

  LocalFacts facts_;
  LocalRecord record_;
};

TEST_F(RelationTest, NoRecordIsAnUpload) {
  const Relation relation = RelationOf(facts_, std::nullopt);
  EXPECT_EQ(relation.claim, Claim::kUpload);
  EXPECT_EQ(relation.file_id, "");
}

TEST_F(RelationTest, CleanRecordAndEqualStatContinue) {
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.claim, Claim::kContinue);
  EXPECT_EQ(relation.base_cut, 12);
  EXPECT_EQ(relation.file_id, std::string(16, 3));
}

TEST_F(RelationTest, ChangedFileIsKnownToDiffer) {
  facts_.stat_at_open.mtime_ns = 2;
  EXPECT_EQ(RelationOf(facts_, record_).base_cut, -1);
}

TEST_F(RelationTest, AnOutsideChangeIsOnTopOfTheLastClose) {
  EXPECT_FALSE(RelationOfOutsideChange(facts_, record_)) << "it was not changed";
  facts_.stat_at_open.mtime_ns = 2;
  const std::optional<Relation> relation = RelationOfOutsideChange(facts_, record_);
  ASSERT_TRUE(relation);
  EXPECT_EQ(relation->claim, Claim::kContinue);
  EXPECT_EQ(relation->base_cut, 12);
}

TEST_F(RelationTest, WhatWasNotClosedOrIsAnothersIsNoOutsideChange) {
  facts_.stat_at_open.mtime_ns = 2;
  for (const RecordState state : {RecordState::kOpen, RecordState::kDiverged}) {
    record_.state = state;
    EXPECT_FALSE(RelationOfOutsideChange(facts_, record_));
  }
  record_.state = RecordState::kClean;
  LocalFacts other = facts_;
  other.server = "node8:7447";
  EXPECT_FALSE(RelationOfOutsideChange(other, record_));
  other = facts_;
  other.name = "other.h5";
  EXPECT_FALSE(RelationOfOutsideChange(other, record_));
  other = facts_;
  other.created = true;
  EXPECT_FALSE(RelationOfOutsideChange(other, record_));
}

TEST_F(RelationTest, ARenamedFileGoesOnUnderItsNewName) {
  record_.name = "old.h5";
  facts_.stat_at_open.ctime_ns = 9;  // As rename(2) leaves it.
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.claim, Claim::kContinue);
  EXPECT_EQ(relation.base_cut, 12);
  EXPECT_EQ(relation.renamed_from, "old.h5");
  EXPECT_FALSE(StreamClaimOf(relation, {}).may_send_early) << "the server may not know it";
}

TEST_F(RelationTest, WhatIsNotCertainToBeRenamedIsAnUpload) {
  record_.name = "old.h5";
  LocalRecord copied = record_;
  copied.stat.inode = 8;
  EXPECT_EQ(RelationOf(facts_, copied).claim, Claim::kUpload);
  LocalRecord crashed = record_;
  crashed.state = RecordState::kOpen;
  EXPECT_EQ(RelationOf(facts_, crashed).claim, Claim::kUpload);
  LocalRecord elsewhere = record_;
  elsewhere.server = "node8:7447";
  elsewhere.state = RecordState::kBehind;
  EXPECT_EQ(RelationOf(facts_, elsewhere).claim, Claim::kUpload);
  facts_.created = true;
  EXPECT_EQ(RelationOf(facts_, record_).claim, Claim::kCreate);
}

TEST_F(RelationTest, ARenameThatTheServerHasNotHeardOfIsToldAgain) {
  record_.state = RecordState::kBehind;
  record_.renamed_from = "old.h5";
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.base_cut, -1);
  EXPECT_EQ(relation.renamed_from, "old.h5");
}

TEST_F(RelationTest, UnansweredCommitIsNamed) {
  record_.state = RecordState::kBehind;
  record_.pending_session_id.fill(9);
  record_.pending_seq = 4;
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.base_seq, 4u);
  EXPECT_EQ(relation.base_session, record_.pending_session_id);
}

TEST_F(RelationTest, BehindWithoutACommitDiffers) {
  record_.state = RecordState::kBehind;
  EXPECT_EQ(RelationOf(facts_, record_).base_cut, -1);
}

TEST_F(RelationTest, DivergedStaysDiverged) {
  record_.state = RecordState::kDiverged;
  record_.pending_seq = 4;
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.base_cut, -1);
  EXPECT_EQ(relation.base_seq, 0u);
}

TEST_F(RelationTest, CreatedFileIsNewWhateverTheRecordSays) {
  facts_.created = true;
  record_.state = RecordState::kDiverged;
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.claim, Claim::kCreate);
  EXPECT_EQ(relation.file_id, std::string(16, 3));
}

TEST_F(RelationTest, CreatedFileResumesFromNothingAndNotFromTheRecordsCut) {
  facts_.created = true;
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(FirstBase(relation), 0);
  const StreamClaim claim = StreamClaimOf(relation, {1, true, FirstBase(relation)});
  EXPECT_TRUE(claim.resume);
  EXPECT_EQ(claim.base_cut, 0);
  EXPECT_FALSE(claim.may_send_early);
}

TEST_F(RelationTest, CreatedFileThatWasNeverAnsweredIsCreatedAgain) {
  facts_.created = true;
  EXPECT_FALSE(StreamClaimOf(RelationOf(facts_, record_), {3, false, 0}).resume);
  EXPECT_FALSE(StreamClaimOf(RelationOf(facts_, record_), {0, true, 0}).resume);
}

TEST_F(RelationTest, ContinuedFileResumesFromItsNewestBase) {
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(StreamClaimOf(relation, {1, false, FirstBase(relation)}).base_cut, 12);
  EXPECT_EQ(StreamClaimOf(relation, {2, true, 14}).base_cut, 14);
}

TEST_F(RelationTest, FileKnownToDifferNeverResumesFromItsRecord) {
  facts_.stat_at_open.mtime_ns = 2;
  const Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(StreamClaimOf(relation, {1, false, FirstBase(relation)}).base_cut, -1);
}

TEST_F(RelationTest, OnlyACreationAndAPlainContinueSendBeforeTheAnswer) {
  const auto early = [](const Relation& relation) {
    return StreamClaimOf(relation, {}).may_send_early;
  };
  EXPECT_TRUE(early(RelationOf(facts_, record_)));
  EXPECT_FALSE(early(RelationOf(facts_, std::nullopt)));  // Upload.
  record_.state = RecordState::kBehind;
  record_.pending_seq = 4;
  EXPECT_FALSE(early(RelationOf(facts_, record_)));
  facts_.created = true;
  EXPECT_TRUE(early(RelationOf(facts_, record_)));
}

TEST_F(RelationTest, FollowerThatSendsItsPredecessorsChangesResumesFromTheirBase) {
  const Relation relation = RelationOf(facts_, record_);
  const StreamClaim claim = StreamClaimOf(relation, {0, false, 9, true});
  EXPECT_TRUE(claim.resume);
  EXPECT_EQ(claim.base_cut, 9);
  EXPECT_FALSE(claim.may_send_early);
}

TEST_F(RelationTest, AMapClaimsWhatItsSessionWouldHave) {
  record_.state = RecordState::kBehind;
  const Relation by_record = RelationOf(facts_, record_);
  EXPECT_EQ(by_record.base_cut, -1) << "without a map nobody knows";
  DirtyMap map;
  map.base_cut = 12;
  map.claim = DirtyMap::Claim::kContinue;
  EXPECT_EQ(RelationOfMap(map, by_record).claim, Claim::kContinue);
  EXPECT_EQ(RelationOfMap(map, by_record).base_cut, 12);
  EXPECT_EQ(RelationOfMap(map, by_record).base_seq, 0u);
  EXPECT_EQ(RelationOfMap(map, by_record).file_id, std::string(16, 3));
  map.session_id.fill(9);
  map.barrier_seq = 4;
  EXPECT_EQ(RelationOfMap(map, by_record).base_seq, 4u);
  EXPECT_EQ(RelationOfMap(map, by_record).base_session, map.session_id);
  map.claim = DirtyMap::Claim::kCreate;
  EXPECT_EQ(RelationOfMap(map, by_record).claim, Claim::kCreate);
  map.claim = DirtyMap::Claim::kUpload;
  EXPECT_EQ(RelationOfMap(map, by_record).claim, Claim::kUpload);
}

TEST_F(RelationTest, AMapOfASessionResumesIt) {
  DirtyMap map;
  map.base_cut = 12;
  map.claim = DirtyMap::Claim::kResume;
  SessionProgress progress;
  progress.base_cut = map.base_cut;
  progress.sends_inherited = true;
  const StreamClaim claim = StreamClaimOf(RelationOfMap(map, Relation()), progress);
  EXPECT_TRUE(claim.resume);
  EXPECT_EQ(claim.base_cut, 12);
  EXPECT_FALSE(claim.may_send_early);
}

TEST_F(RelationTest, AChangeOfTheServersFileGoesOnFromTheCutThatWasOpened) {
  Relation relation;
  relation.claim = Claim::kChange;
  relation.base_cut = 7;
  EXPECT_EQ(FirstBase(relation), 7);
  const StreamClaim first = StreamClaimOf(relation, {0, false, 7});
  EXPECT_FALSE(first.resume);
  EXPECT_EQ(first.base_cut, 7);
  EXPECT_FALSE(first.may_send_early) << "the file may have changed";
  EXPECT_TRUE(StreamClaimOf(relation, {1, true, 7}).resume);
  EXPECT_EQ(StreamClaimOf(relation, {3, true, 9}).base_cut, 9);
}

TEST_F(RelationTest, AReplacementThatWasLostBeginsAgain) {
  Relation relation;
  relation.claim = Claim::kReplace;
  EXPECT_FALSE(StreamClaimOf(relation, {2, false, 0}).resume) << "it was never answered";
  EXPECT_TRUE(StreamClaimOf(relation, {2, true, 0}).resume);
  SessionProgress lost{2, true, 0};
  lost.begins_again = true;
  EXPECT_FALSE(StreamClaimOf(relation, lost).resume);
}

TEST_F(RelationTest, OfAnotherAddressItClaimsNoNumber) {
  record_.server = "elsewhere:7447";
  Relation relation = RelationOf(facts_, record_);
  EXPECT_EQ(relation.claim, Claim::kContinue);
  EXPECT_EQ(relation.base_cut, -1) << "for servers that cannot tell";
  EXPECT_EQ(relation.moved_cut, record_.cut);
  EXPECT_EQ(relation.moved_stat, record_.stat);
  EXPECT_FALSE(relation.file_id.empty());
  EXPECT_FALSE(StreamClaimOf(relation, {}).may_send_early);
}

TEST_F(RelationTest, OfAnotherAddressOnlyWhatWasLevelIsClaimed) {
  record_.server = "elsewhere:7447";
  LocalRecord changed = record_;
  ++changed.stat.ctime_ns;
  LocalRecord open = record_;
  open.state = RecordState::kOpen;
  LocalRecord nameless = record_;
  nameless.name = "other.h5";
  for (const LocalRecord& record : {changed, open, nameless}) {
    EXPECT_EQ(RelationOf(facts_, record).claim, Claim::kUpload);
  }
}

}  // namespace
}  // namespace h5mirror::vfd
