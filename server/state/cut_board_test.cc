#include "server/state/cut_board.h"
#include "base/testing/fake_clock.h"

#include <vector>

#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

class CutBoardTest : public testing::Test {
 protected:
  uint64_t Wait(const char* name, absl::Duration timeout = absl::Seconds(10)) {
    return board_.Wait(name, timeout, [this](CutBoard::Why why) { told_.push_back(why); });
  }

  FakeClock clock_;
  CutBoard board_{clock_};
  std::vector<CutBoard::Why> told_;
};

TEST_F(CutBoardTest, TellsOnceAndOnlyOfTheFile) {
  Wait("a.h5");
  Wait("a.h5");
  Wait("b.h5");
  board_.OnCut("c.h5");
  EXPECT_TRUE(told_.empty());
  board_.OnCut("a.h5");
  EXPECT_EQ(told_, std::vector(2, CutBoard::Why::kCut));
  board_.OnCut("a.h5");
  EXPECT_EQ(told_.size(), 2);
  EXPECT_EQ(board_.size(), 1);
}

TEST_F(CutBoardTest, TellsWhenTheTimeIsOver) {
  Wait("a.h5", absl::Seconds(1));
  Wait("a.h5", absl::Seconds(3));
  clock_.Advance(absl::Seconds(2));
  board_.OnTimer();
  EXPECT_EQ(told_, std::vector(1, CutBoard::Why::kTimeout));
  EXPECT_EQ(board_.size(), 1);
}

TEST_F(CutBoardTest, OneThatIsCancelledIsNotTold) {
  const uint64_t first = Wait("a.h5"), second = Wait("a.h5");
  EXPECT_TRUE(board_.Cancel("a.h5", first));
  EXPECT_FALSE(board_.Cancel("a.h5", first));
  EXPECT_FALSE(board_.Cancel("b.h5", second));
  board_.OnCut("a.h5");
  EXPECT_EQ(told_.size(), 1);
  EXPECT_FALSE(board_.Cancel("a.h5", second));
}

TEST_F(CutBoardTest, AWaiterMayWaitAgainWhileItIsTold) {
  board_.Wait("a.h5", absl::Seconds(1), [this](CutBoard::Why) { Wait("a.h5"); });
  board_.OnCut("a.h5");
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(board_.size(), 1);
}

TEST_F(CutBoardTest, AfterTheStopNobodyWaits) {
  Wait("a.h5");
  board_.Stop();
  EXPECT_EQ(told_, std::vector(1, CutBoard::Why::kStopped));
  Wait("a.h5");
  EXPECT_EQ(told_, std::vector(2, CutBoard::Why::kStopped));
  EXPECT_EQ(board_.size(), 0);
}

}  // namespace
}  // namespace h5mirror::server
