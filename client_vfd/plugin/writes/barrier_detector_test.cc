#include "client_vfd/plugin/writes/barrier_detector.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

class BarrierDetectorTest : public testing::Test {
 protected:
  void Write(Outcome outcome = Outcome::kOk) { detector_.OnWrite(outcome); }
  void Truncate(Phase phase, Outcome outcome = Outcome::kOk) {
    detector_.OnTruncate(phase, outcome);
  }
  Moment Flush(Phase phase, Outcome outcome = Outcome::kOk) {
    return detector_.OnFlush(phase, outcome);
  }
  void CleanClosing() {
    Truncate(Phase::kClosing);
    Flush(Phase::kClosing);
    Truncate(Phase::kClosing);
    Write();  // The superblock, after the last flush.
  }

  BarrierDetector detector_;
};

TEST_F(BarrierDetectorTest, FlushAfterTruncateIsACut) {
  Write();
  Truncate(Phase::kOpen);
  Write();
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kFlush);
}

TEST_F(BarrierDetectorTest, ObjectFlushIsNoCut) {
  Write();
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
}

TEST_F(BarrierDetectorTest, OneTruncateServesOneFlush) {
  Truncate(Phase::kOpen);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kFlush);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
}

TEST_F(BarrierDetectorTest, OpenReadWriteIsNoCut) {
  Write();
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
  EXPECT_EQ(detector_.OnClose(), Moment::kNone);
}

TEST_F(BarrierDetectorTest, FailedWriteInsideAFlushSpoilsIt) {
  Truncate(Phase::kOpen);
  Write(Outcome::kFailed);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
}

TEST_F(BarrierDetectorTest, FlushAfterAFailureMakesGoodAgain) {
  Write(Outcome::kFailed);
  Truncate(Phase::kOpen);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kFlush);
}

TEST_F(BarrierDetectorTest, FailedFlushIsNoCut) {
  Truncate(Phase::kOpen);
  EXPECT_EQ(Flush(Phase::kOpen, Outcome::kFailed), Moment::kNone);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
}

TEST_F(BarrierDetectorTest, BareFlushInSwmrModeIsACut) {
  detector_.SetSwmr(true);
  Write();
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kFlush);
  detector_.SetSwmr(false);
  EXPECT_EQ(Flush(Phase::kOpen), Moment::kNone);
}

TEST_F(BarrierDetectorTest, CleanCloseIsACut) {
  Write();
  CleanClosing();
  EXPECT_EQ(detector_.OnClose(), Moment::kClose);
}

TEST_F(BarrierDetectorTest, ProbeIsNoCut) { EXPECT_EQ(detector_.OnClose(), Moment::kNone); }

TEST_F(BarrierDetectorTest, CloseAfterAFailedFlushIsNoCut) {
  Truncate(Phase::kClosing);
  Flush(Phase::kClosing, Outcome::kFailed);
  Truncate(Phase::kClosing);
  EXPECT_EQ(detector_.OnClose(), Moment::kNone);
}

TEST_F(BarrierDetectorTest, CloseWithOneTruncateIsNoCut) {
  Truncate(Phase::kClosing);
  Flush(Phase::kClosing);
  EXPECT_EQ(detector_.OnClose(), Moment::kNone);
}

TEST_F(BarrierDetectorTest, FailedLastSuperblockWriteIsNoCut) {
  CleanClosing();
  Write(Outcome::kFailed);
  EXPECT_EQ(detector_.OnClose(), Moment::kNone);
}

TEST_F(BarrierDetectorTest, EarlierFailureWithoutAFlushSpoilsTheClose) {
  Write(Outcome::kFailed);
  CleanClosing();
  EXPECT_EQ(detector_.OnClose(), Moment::kNone);
}

}  // namespace
}  // namespace h5mirror::vfd
