#include "cluster/cells.h"

#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

class CellsTest : public ::testing::Test {
 protected:
  CellsTest() {
    view_.servers["a"] = {2, ServerState::kUp, "host-a:5", "a-2", {}};
    view_.servers["b"] = {4, ServerState::kUp, "host-b:5", "b-4", {}};
    cells_.SetOwnEpoch(2);
    Put("x", {CellState::kServed, "a", 2, 7, 20, false});
    Put("y", {CellState::kServed, "b", 4, 9, 30, false});
  }
  void Put(const std::string& cell, const CellRecord& record) {
    view_.cells[cell] = record;
    cells_.Update(view_);
  }

  ClusterView view_;
  Cells cells_{"a"};
};

TEST_F(CellsTest, TheOwnerServes) {
  for (const uint64_t seen : {uint64_t{0}, uint64_t{6}, uint64_t{7}}) {
    const Route route = cells_.Resolve("x", seen);
    EXPECT_EQ(route.kind, RouteKind::kServe) << seen;
    EXPECT_EQ(route.epoch, 7u);
  }
}

TEST_F(CellsTest, OthersAreSentToTheOwner) {
  const Route route = cells_.Resolve("y", 0);
  EXPECT_EQ(route.kind, RouteKind::kRedirect);
  EXPECT_EQ(route.epoch, 9u);
  EXPECT_EQ(route.owner, "b");
  EXPECT_EQ(route.listen, "host-b:5");
}

TEST_F(CellsTest, ARedirectHasANewerEpochThanItsCaller) {
  EXPECT_EQ(cells_.Resolve("y", 8).kind, RouteKind::kRedirect);
  EXPECT_EQ(cells_.Resolve("y", 9).kind, RouteKind::kWait);
  EXPECT_EQ(cells_.Resolve("y", 10).kind, RouteKind::kReadAgain);
  EXPECT_EQ(cells_.Resolve("x", 8).kind, RouteKind::kReadAgain) << "its own cell, too";
}

TEST_F(CellsTest, NobodyAnswersForACellThatIsNotServed) {
  for (const CellState state : {CellState::kFree, CellState::kOpening, CellState::kDraining}) {
    Put("x", {state, "a", 2, 7, view_.cells["x"].seq + 1, false});
    EXPECT_EQ(cells_.Resolve("x", 0).kind, RouteKind::kWait);
  }
}

TEST_F(CellsTest, AnEarlierLifeServesNothing) {
  cells_.SetOwnEpoch(3);
  view_.servers["a"].epoch = 3;
  cells_.Update(view_);
  EXPECT_EQ(cells_.Resolve("x", 0).kind, RouteKind::kWait);
}

TEST_F(CellsTest, NobodyIsSentToAServerThatIsDead) {
  view_.servers["b"].state = ServerState::kDead;
  cells_.Update(view_);
  EXPECT_EQ(cells_.Resolve("y", 0).kind, RouteKind::kWait);
}

TEST_F(CellsTest, AnOlderLookChangesNothing) {
  const ClusterView old = view_;
  view_.servers["b"].state = ServerState::kFenced;
  Put("y", {CellState::kServed, "a", 2, 10, 33, false});
  cells_.Update(old);
  const Route route = cells_.Resolve("y", 0);
  EXPECT_EQ(route.kind, RouteKind::kServe);
  EXPECT_EQ(route.epoch, 10u);
  cells_.Put("y", {CellState::kFree, "a", 2, 10, 32, true});
  EXPECT_EQ(cells_.Resolve("y", 0).kind, RouteKind::kServe);
}

TEST_F(CellsTest, AChangeOfItsOwnCountsAtOnce) {
  cells_.Put("y", {CellState::kServed, "a", 2, 10, 31, false});
  EXPECT_EQ(cells_.Resolve("y", 9).kind, RouteKind::kServe);
}

TEST_F(CellsTest, AFileLiesInTheLongestCell) {
  EXPECT_EQ(cells_.CellOf("x/run7.h5"), "x");
  EXPECT_EQ(cells_.CellOf("x"), "x");
  EXPECT_EQ(cells_.CellOf("xy/run7.h5"), std::nullopt);
  EXPECT_EQ(cells_.CellOf("run7.h5"), std::nullopt);
  Put("x/deep/er", {CellState::kFree, "", 0, 0, 1, true});
  EXPECT_EQ(cells_.CellOf("x/deep/er/run7.h5"), "x/deep/er");
  EXPECT_EQ(cells_.CellOf("x/deep/run7.h5"), "x");
  Put("", {CellState::kFree, "", 0, 0, 1, true});
  EXPECT_EQ(cells_.CellOf("run7.h5"), "");
}

TEST_F(CellsTest, AnUnknownCellIsNone) {
  EXPECT_EQ(cells_.Resolve("z", 0).kind, RouteKind::kNoCell);
}

}  // namespace
}  // namespace h5mirror::cluster
