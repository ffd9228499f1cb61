#include "cluster/wishes.h"

#include "cluster/claims.h"
#include "cluster/testing/failing_registry.h"
#include "cluster/testing/memory_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::HasSubstr;

class WishesTest : public ::testing::Test {
 protected:
  WishesTest() {
    SetServer("a", ServerState::kUp);
    SetServer("b", ServerState::kUp);
    CellRecord cell;
    cell.state = CellState::kServed;
    cell.owner = "a";
    cell.epoch = 7;
    SetCell(cell);
  }
  void SetServer(const std::string& id, ServerState state) {
    const ServerRecord record = {3, state, id + ":5", id + "-3", {}};
    ASSERT_TRUE(registry_.CompareAndSet({}, {{ServerName(id), Encode(record)}}).ok());
  }
  void SetCell(const CellRecord& record) {
    ASSERT_TRUE(registry_.CompareAndSet({}, {{CellName("x"), Encode(record)}}).ok());
  }
  ClusterView View() { return *ReadCluster(registry_); }

  MemoryRegistry registry_;
};

TEST_F(WishesTest, AMoveIsWantedAtTheCellsEpoch) {
  EXPECT_EQ(View().MovesTo("x"), "");
  EXPECT_EQ(AskToMove(registry_, "x", "b").value(), 7u);
  EXPECT_EQ(AskToMove(registry_, "x", "b").value(), 7u) << "again";
  EXPECT_EQ(View().MovesTo("x"), "b");
  EXPECT_EQ(AskToMove(registry_, "x", "a").value(), 0u) << "it is there";
  EXPECT_EQ(View().MovesTo("x"), "a") << "the earlier wish is over";
  EXPECT_EQ(AskToMove(registry_, "x", "b").value(), 7u);
  CellRecord taken = View().cells["x"];
  ++taken.epoch;
  SetCell(taken);
  EXPECT_EQ(View().MovesTo("x"), "") << "the wish is over";
}

TEST_F(WishesTest, AnUnknownCellIsNamedAsAnOperatorKnowsIt) {
  const absl::Status root = AskToMove(registry_, "", "b").status();
  EXPECT_TRUE(absl::IsNotFound(root)) << root;
  EXPECT_EQ(std::string(root.message()), "the root is no cell of this cluster; its cells are x");
}

TEST_F(WishesTest, AMoveIsForOneLifeOfItsTarget) {
  ASSERT_TRUE(AskToMove(registry_, "x", "b").ok());
  EXPECT_EQ(View().moves["x"].to_epoch, 3u);
  const ServerRecord next = {4, ServerState::kUp, "b:5", "b-4", {}};
  ASSERT_TRUE(registry_.CompareAndSet({}, {{ServerName("b"), Encode(next)}}).ok());
  EXPECT_EQ(View().MovesTo("x"), "");
  // The text of an older release.
  const std::string old = R"({"epoch":7,"to":"b"})";
  ASSERT_TRUE(registry_.CompareAndSet({}, {{MoveName("x"), old}}).ok());
  EXPECT_EQ(View().MovesTo("x"), "b");
  EXPECT_EQ(Encode(View().moves["x"]), old);
}

TEST_F(WishesTest, AMoveNamesWhatThereIs) {
  const absl::Status cell = AskToMove(registry_, "y", "b").status();
  EXPECT_TRUE(absl::IsNotFound(cell)) << cell;
  EXPECT_THAT(std::string(cell.message()), HasSubstr("its cells are x"));
  const absl::Status server = AskToMove(registry_, "x", "c").status();
  EXPECT_TRUE(absl::IsNotFound(server)) << server;
  EXPECT_THAT(std::string(server.message()), HasSubstr("its servers are a, b"));
}

TEST_F(WishesTest, OnlyAServerThatIsUpGetsACell) {
  ASSERT_TRUE(AskToMove(registry_, "x", "b").ok());
  SetServer("b", ServerState::kDraining);
  EXPECT_EQ(View().MovesTo("x"), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(AskToMove(registry_, "x", "b").status()));
}

TEST_F(WishesTest, ACellThatNobodyServesDoesNotMove) {
  CellRecord cell = View().cells["x"];
  cell.state = CellState::kOpening;
  SetCell(cell);
  EXPECT_TRUE(absl::IsFailedPrecondition(AskToMove(registry_, "x", "b").status()));
}

TEST_F(WishesTest, ADrainIsForOneLife) {
  EXPECT_TRUE(AskToDrain(registry_, "a", DrainWish::kNone).ok());
  EXPECT_EQ(View().texts.count(DrainName("a")), 0u);
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kStay).ok());
  EXPECT_EQ(View().WishFor("a"), DrainWish::kStay);
  EXPECT_EQ(View().WishFor("b"), DrainWish::kNone);
  ServerRecord next = View().servers["a"];
  ++next.epoch;
  ASSERT_TRUE(registry_.CompareAndSet({}, {{ServerName("a"), Encode(next)}}).ok());
  EXPECT_EQ(View().WishFor("a"), DrainWish::kNone);
}

TEST_F(WishesTest, TheLastServerIsNotDrained) {
  SetServer("b", ServerState::kFenced);
  const absl::Status last = AskToDrain(registry_, "a", DrainWish::kExit);
  EXPECT_TRUE(absl::IsFailedPrecondition(last)) << last;
  EXPECT_THAT(std::string(last.message()), HasSubstr("nobody could take its cells"));
  EXPECT_TRUE(absl::IsFailedPrecondition(AskToDrain(registry_, "b", DrainWish::kStay)));
  EXPECT_TRUE(AskToDrain(registry_, "a", DrainWish::kNone).ok());
}

// Neither has taken its own wish yet, so both are up.
TEST_F(WishesTest, AServerThatIsToBeDrainedTakesNoCells) {
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kStay).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(AskToDrain(registry_, "b", DrainWish::kStay)));
  ASSERT_TRUE(AskToDrain(registry_, "a", DrainWish::kNone).ok());
  EXPECT_TRUE(AskToDrain(registry_, "b", DrainWish::kStay).ok());
}

TEST_F(WishesTest, OfTwoDrainsAtOnceOneIsRefused) {
  FailingRegistry first(registry_);
  absl::Status second;
  first.BeforeNextChange([&] { second = AskToDrain(registry_, "b", DrainWish::kStay); });
  const absl::Status refused = AskToDrain(first, "a", DrainWish::kStay);
  EXPECT_TRUE(second.ok()) << second;
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

}  // namespace
}  // namespace h5mirror::cluster
