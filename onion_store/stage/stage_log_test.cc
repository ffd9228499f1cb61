#include "onion_store/stage/stage_log.h"

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/disk/coding.h"

namespace h5mirror::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StageLogTest : public testing::Test {
 protected:
  StageLogTest() : tree_(*env_.OpenTree("/")), log_(*tree_, "d", FileId{1}) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  }

  absl::Status Append(StageLog& log, std::string_view bytes) {
    Extent extent{100, bytes.size()};
    return log.AppendWrite(1, 0, {&extent, 1}, {&bytes, 1}).status();
  }
  // What a log of `end` replays: the lengths of its writes, and its cuts as negative numbers.
  absl::Status Replay(StageEnd end, std::vector<int64_t>* found) {
    StageLog log(*tree_, "d", FileId{1});
    if (absl::Status opened = log.Open(1, end); !opened.ok()) return opened;
    StageVisitor visitor;
    visitor.on_write = [&](Extent extent, StageLocation) {
      found->push_back(static_cast<int64_t>(extent.length));
      return absl::OkStatus();
    };
    visitor.on_revert = [&](const Revert& revert) {
      found->push_back(static_cast<int64_t>(revert.extent.offset));
      found->push_back(static_cast<int64_t>(PagesSegmentOf(revert.at)));
      return absl::OkStatus();
    };
    visitor.on_truncate = [](uint64_t) { return absl::OkStatus(); };
    visitor.on_cut = [&](CutNumber cut, uint64_t, absl::Span<const Extent>, StageEnd) {
      found->push_back(-cut);
      return absl::OkStatus();
    };
    return log.Replay(visitor);
  }
  void Poke(uint64_t offset, std::string_view bytes) {
    auto file = tree_->Open("d/stage-000001", OpenKind::kWrite, 0);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(WriteAt(**file, offset, bytes).ok());
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  StageLog log_;
};

TEST_F(StageLogTest, ASegmentThatWasCutOffIsNamed) {
  const Extent extent{100, 10};
  const std::string_view bytes = "0123456789";
  const auto at = log_.AppendWrite(1, 0, {&extent, 1}, {&bytes, 1});
  ASSERT_TRUE(at.ok()) << at.status();
  ASSERT_TRUE((*tree_->Open("d/stage-000001", OpenKind::kWrite, 0))->Truncate(5).ok());
  std::string out(10, '?');
  const absl::Status read = ReadStaged(log_.segments(), *at, absl::MakeSpan(out));
  EXPECT_TRUE(absl::IsDataLoss(read));
  EXPECT_THAT(read.ToString(), HasSubstr("d/stage-000001 has 5 bytes, and 10 are to be read at"));
}

TEST_F(StageLogTest, WhatWasAppendedIsReplayedInOrder) {
  ASSERT_TRUE(Append(log_, "abc").ok());
  ASSERT_TRUE(log_.AppendCut(1, 7, 103, {}).ok());
  ASSERT_TRUE(log_.Rotate().ok());
  ASSERT_TRUE(Append(log_, "de").ok());
  std::vector<int64_t> found;
  ASSERT_TRUE(Replay(log_.end(), &found).ok());
  EXPECT_THAT(found, testing::ElementsAre(3, -7, 2));
}

TEST_F(StageLogTest, WhatComesBackIsNamedAndNotCopied) {
  const std::vector<Revert> reverts{{{500, 4096}, MakePagesLocation(12, 64), 1},
                                    {{9000, 1 << 20}, MakePagesLocation(0, 0), 2}};
  ASSERT_TRUE(log_.AppendReverts(1, 7, reverts).ok());
  EXPECT_LT(log_.byte_count(), 200u);
  ASSERT_TRUE(Append(log_, "abc").ok());
  std::vector<int64_t> found;
  ASSERT_TRUE(Replay(log_.end(), &found).ok());
  EXPECT_THAT(found, testing::ElementsAre(500, 12, 9000, 0, 3));
}

TEST_F(StageLogTest, WhatComesBackFromNowhereIsDataLoss) {
  const Revert revert{{500, 4096}, MakePagesLocation(12, 64), 1};
  ASSERT_TRUE(log_.AppendReverts(1, 7, {&revert, 1}).ok());
  Poke(log_.end().bytes - 1, std::string(1, '\0'));  // The bit that says "in pages".
  std::vector<int64_t> found;
  EXPECT_TRUE(absl::IsDataLoss(Replay(log_.end(), &found)));
}

TEST_F(StageLogTest, ATornTailBehindTheDurableEndIsDropped) {
  ASSERT_TRUE(Append(log_, "abc").ok());
  StageEnd end = log_.end();
  Poke(end.bytes, std::string(100, 'x'));
  std::vector<int64_t> found;
  ASSERT_TRUE(Replay(end, &found).ok());
  EXPECT_THAT(found, testing::ElementsAre(3));
}

TEST_F(StageLogTest, AFlippedBitIsDataLossAndNamesSegmentAndOffset) {
  ASSERT_TRUE(Append(log_, "abc").ok());
  StageEnd first = log_.end();
  ASSERT_TRUE(Append(log_, "def").ok());
  Poke(log_.end().bytes - 1, "F");
  std::vector<int64_t> found;
  absl::Status replayed = Replay(log_.end(), &found);
  EXPECT_TRUE(absl::IsDataLoss(replayed)) << replayed;
  EXPECT_THAT(std::string(replayed.message()),
              HasSubstr("stage-000001, record at " + std::to_string(first.bytes)));
}

TEST_F(StageLogTest, HostileCountsLeadNowhere) {
  ASSERT_TRUE(Append(log_, "abc").ok());
  std::string huge;
  PutInt<uint32_t>(&huge, UINT32_MAX);
  Poke(12, huge);
  std::vector<int64_t> found;
  EXPECT_TRUE(absl::IsDataLoss(Replay(log_.end(), &found)));
}

// A program that writes every other page of a new part of the file makes such cuts.
TEST_F(StageLogTest, ACutOfAnyNumberOfDirectExtentsIsReplayed) {
  std::vector<Extent> direct((1 << 20) + 1);
  for (size_t i = 0; i < direct.size(); ++i) direct[i] = {i * 8192, 4096};
  ASSERT_TRUE(log_.AppendCut(1, 7, direct.back().end(), direct).ok());
  std::vector<int64_t> found;
  absl::Status replayed = Replay(log_.end(), &found);
  EXPECT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(found, testing::ElementsAre(-7));
}

TEST_F(StageLogTest, ARunThatComesBackHasABoundedLength) {
  const Revert revert{{500, kPageRunBytesMax + 1}, MakePagesLocation(12, 64), 1};
  ASSERT_TRUE(log_.AppendReverts(1, 7, {&revert, 1}).ok());
  std::vector<int64_t> found;
  EXPECT_TRUE(absl::IsDataLoss(Replay(log_.end(), &found)));
}

TEST_F(StageLogTest, AnImpossibleSizeIsDataLoss) {
  ASSERT_TRUE(log_.AppendTruncate(1, 7, uint64_t{1} << 63).ok());
  std::vector<int64_t> found;
  EXPECT_TRUE(absl::IsDataLoss(Replay(log_.end(), &found)));
}

TEST_F(StageLogTest, AFailedWriteLeavesNothingBehindTheLastRecordOfASegment) {
  ASSERT_TRUE(Append(log_, "abc").ok());
  env_.FailCall(0, absl::ResourceExhaustedError("No space left on device"));
  EXPECT_FALSE(Append(log_, std::string(5000, 'x')).ok());  // Half of it is in the file.
  ASSERT_TRUE(Append(log_, "de").ok());
  ASSERT_TRUE(log_.Rotate().ok());
  ASSERT_TRUE(Append(log_, "f").ok());
  std::vector<int64_t> found;
  absl::Status replayed = Replay(log_.end(), &found);
  EXPECT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(found, testing::ElementsAre(3, 2, 1));
}

class KeptStageTest : public StageLogTest {
 protected:
  int64_t FileBytes() { return tree_->Stat("d/stage-000001")->size_bytes; }
  void ExpectReplay(const std::vector<int64_t>& wanted) {
    std::vector<int64_t> found;
    const absl::Status replayed = Replay(log_.end(), &found);
    EXPECT_TRUE(replayed.ok()) << replayed;
    EXPECT_EQ(found, wanted);
  }
};

TEST_F(KeptStageTest, ASmallFileIsKeptAndWrittenOver) {
  ASSERT_TRUE(Append(log_, std::string(5000, 'x')).ok());
  const int64_t size = FileBytes();
  ASSERT_TRUE(log_.Reset(size).ok());
  EXPECT_EQ(log_.end().bytes, 0u);
  ASSERT_TRUE(Append(log_, "abc").ok());
  ASSERT_TRUE(log_.AppendCut(1, 7, 103, {}).ok());
  EXPECT_EQ(FileBytes(), size);
  ExpectReplay({3, -7});
}

TEST_F(KeptStageTest, ALargerFileIsEmptied) {
  ASSERT_TRUE(Append(log_, std::string(5000, 'x')).ok());
  ASSERT_TRUE(log_.Reset(FileBytes() - 1).ok());
  EXPECT_EQ(FileBytes(), 0);
}

TEST_F(KeptStageTest, OldBytesDoNotStayInASegmentThatIsLeft) {
  ASSERT_TRUE(Append(log_, std::string(5000, 'x')).ok());
  ASSERT_TRUE(log_.Reset(StageLog::kKeptBytes).ok());
  ASSERT_TRUE(Append(log_, "abc").ok());
  log_.segments().back()->dirty = false;
  ASSERT_TRUE(log_.Rotate().ok());
  EXPECT_TRUE(log_.segments().front()->dirty) << "what was cut off comes back with the power";
  ASSERT_TRUE(Append(log_, "de").ok());
  ExpectReplay({3, 2});
}

TEST_F(KeptStageTest, ASegmentThatCannotBeCutOffIsNotLeft) {
  ASSERT_TRUE(Append(log_, std::string(5000, 'x')).ok());
  ASSERT_TRUE(log_.Reset(StageLog::kKeptBytes).ok());
  ASSERT_TRUE(Append(log_, "abc").ok());
  env_.FailCall(0, absl::InternalError("Input/output error"));
  EXPECT_FALSE(log_.Rotate().ok());
  ASSERT_TRUE(Append(log_, "de").ok());
  EXPECT_EQ(log_.end().segment, 1u);
  ExpectReplay({3, 2});
}

TEST_F(KeptStageTest, AFileThatReceivesBytesInAdvanceGrowsSeldom) {
  env_.SetGrowsAhead(true);
  ASSERT_TRUE(Append(log_, "abc").ok());
  const int64_t size = FileBytes();
  EXPECT_GT(size, static_cast<int64_t>(log_.end().bytes));
  ASSERT_TRUE(Append(log_, "de").ok());
  ASSERT_TRUE(log_.AppendCut(1, 7, 103, {}).ok());
  EXPECT_EQ(FileBytes(), size);
  ASSERT_TRUE(log_.Rotate().ok());
  EXPECT_LT(FileBytes(), size);
  ASSERT_TRUE(Append(log_, "f").ok());
  ExpectReplay({3, 2, -7, 1});
}

TEST_F(KeptStageTest, ALargeRecordReceivesNoBytesInAdvance) {
  env_.SetGrowsAhead(true);
  ASSERT_TRUE(Append(log_, std::string(100'000, 'x')).ok());
  EXPECT_EQ(FileBytes(), static_cast<int64_t>(log_.end().bytes));
  ExpectReplay({100'000});
}

TEST_F(KeptStageTest, AFileThatIsNotKeptReceivesNoBytesInAdvance) {
  env_.SetGrowsAhead(true);
  const std::string small(10'000, 'x');
  while (log_.end().bytes + small.size() < StageLog::kKeptBytes - 200) {
    ASSERT_TRUE(Append(log_, small).ok());
  }
  EXPECT_EQ(FileBytes(), static_cast<int64_t>(StageLog::kKeptBytes));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Append(log_, small).ok());
  EXPECT_EQ(FileBytes(), static_cast<int64_t>(log_.end().bytes));
}

class SmallSegmentsTest : public StageLogTest {
 protected:
  static constexpr uint64_t kSegment = 1000;
  StageLog small_{*tree_, "d", FileId{1}, kSegment};
};

TEST_F(SmallSegmentsTest, OneCutMayLieInSeveralSegments) {
  for (int64_t length : {500, 500, 300, 2000, 10}) {
    ASSERT_TRUE(Append(small_, std::string(length, 'x')).ok());
  }
  ASSERT_TRUE(small_.AppendCut(1, 7, 3000, {}).ok());
  EXPECT_EQ(small_.end().segment, 4u) << "of 500; of 500 and 300; of 2000; of 10 and the cut";
  EXPECT_TRUE(small_.TakeNamesChanged());
  for (const auto& segment : small_.segments()) EXPECT_TRUE(segment->dirty) << segment->name;
  std::vector<int64_t> found;
  absl::Status replayed = Replay(small_.end(), &found);
  EXPECT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(found, testing::ElementsAre(500, 500, 300, 2000, 10, -7));
}

TEST_F(SmallSegmentsTest, BytesAreFoundInEachSegment) {
  std::vector<StageLocation> places;
  for (char byte : {'a', 'b', 'c'}) {
    const std::string bytes(700, byte);
    const std::string_view piece = bytes;
    const Extent extent{0, bytes.size()};
    const auto at = small_.AppendWrite(1, 0, {&extent, 1}, {&piece, 1});
    ASSERT_TRUE(at.ok()) << at.status();
    places.push_back(*at);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(SegmentOf(places[i]), static_cast<uint64_t>(i) + 1);
    std::string out(700, '?');
    ASSERT_TRUE(ReadStaged(small_.segments(), places[i], absl::MakeSpan(out)).ok());
    EXPECT_EQ(out, std::string(700, static_cast<char>('a' + i)));
  }
}

TEST_F(SmallSegmentsTest, WhatIsTakenBackTakesItsSegmentsAlong) {
  ASSERT_TRUE(Append(small_, std::string(300, 'x')).ok());
  ASSERT_TRUE(small_.AppendCut(1, 7, 3000, {}).ok());
  const StageEnd end = small_.end();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Append(small_, std::string(600, 'y')).ok());
  EXPECT_GT(small_.end().segment, end.segment + 3);
  ASSERT_TRUE(small_.RewindTo(end).ok());
  EXPECT_EQ(small_.segments().size(), 1u);
  EXPECT_EQ(tree_->List("d")->size(), 1u);
  ASSERT_TRUE(Append(small_, "abc").ok());
  ASSERT_TRUE(Append(small_, std::string(900, 'z')).ok());
  std::vector<int64_t> found;
  absl::Status replayed = Replay(small_.end(), &found);
  EXPECT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(found, testing::ElementsAre(300, -7, 3, 900));
}

TEST_F(SmallSegmentsTest, AFailedWriteLeavesNothingAtTheEndOfASegmentThatIsLeft) {
  ASSERT_TRUE(Append(small_, "abc").ok());
  small_.segments().back()->dirty = false;
  env_.FailCall(0, absl::ResourceExhaustedError("No space left on device"));
  EXPECT_FALSE(Append(small_, std::string(500, 'x')).ok());  // Half of it is in the file.
  small_.segments().back()->dirty = false;                   // A sync takes the mark away.
  ASSERT_TRUE(Append(small_, std::string(950, 'y')).ok());
  EXPECT_TRUE(small_.segments().front()->dirty) << "what was cut off comes back with the power";
  std::vector<int64_t> found;
  absl::Status replayed = Replay(small_.end(), &found);
  EXPECT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(found, testing::ElementsAre(3, 950));
}

TEST_F(StageLogTest, ASegmentThatIsNotHeldIsNamedBesideOneThatIs) {
  ASSERT_TRUE(Append(log_, "abc").ok());
  std::string out(3, '?');
  const absl::Status read = ReadStaged(log_.segments(), MakeLocation(7, 64), absl::MakeSpan(out));
  EXPECT_TRUE(absl::IsInternal(read));
  EXPECT_THAT(read.ToString(), AllOf(HasSubstr("segment 7"), HasSubstr("d/stage-000001")));
}

}  // namespace
}  // namespace h5mirror::store
