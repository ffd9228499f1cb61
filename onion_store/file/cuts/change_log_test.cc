#include "onion_store/file/cuts/change_log.h"

#include <memory>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ExtentSet Set(std::initializer_list<Extent> extents) {
  ExtentSet set;
  for (const Extent& extent : extents) set.Add(extent);
  return set;
}

bool IsKnown(const ChangeLog& log, CutNumber from, CutNumber to) {
  const auto changes = log.Between(from, to);
  EXPECT_TRUE(changes.ok() || absl::IsOutOfRange(changes.status())) << changes.status();
  return changes.ok();
}

TEST(ChangeLogTest, MergesWhatCutsChanged) {
  ChangeLog log;
  EXPECT_FALSE(log.started());
  EXPECT_FALSE(IsKnown(log, 0, 0));
  log.Start(10);
  EXPECT_THAT(*log.Between(10, 10), IsEmpty());
  log.Add(12, Set({{0, 10}, {100, 10}}));
  log.Add(13, Set({{5, 10}}));
  log.Add(20, Set({{200, 1}}));
  EXPECT_THAT(*log.Between(10, 20), ElementsAre(Extent{0, 15}, Extent{100, 10}, Extent{200, 1}));
  EXPECT_THAT(*log.Between(12, 13), ElementsAre(Extent{5, 10}));
  EXPECT_THAT(*log.Between(13, 13), IsEmpty());
}

TEST(ChangeLogTest, KnowsNothingOfCutsThatItWasNotTold) {
  ChangeLog log;
  log.Start(10);
  log.Add(30, Set({{0, 1}}));
  EXPECT_FALSE(IsKnown(log, 9, 30)) << "before it began";
  EXPECT_FALSE(IsKnown(log, 20, 30)) << "discarded by a crash";
  EXPECT_FALSE(IsKnown(log, 31, 31));
  EXPECT_FALSE(IsKnown(log, 10, 31));
  log.AddWhole(31);
  EXPECT_FALSE(IsKnown(log, 30, 31));
  EXPECT_TRUE(IsKnown(log, 31, 31));
}

TEST(ChangeLogTest, StoppedItKnowsNothing) {
  ChangeLog log;
  log.Start(1);
  log.Add(2, Set({{0, 1}}));
  log.Stop();
  EXPECT_FALSE(log.started());
  EXPECT_FALSE(IsKnown(log, 0, 0));
  EXPECT_FALSE(IsKnown(log, 1, 2));
}

TEST(ChangeLogTest, BeyondItsBoundTheOldestCutsBecomeOne) {
  ChangeLog log(7);
  log.Start(1);
  log.Add(2, Set({{0, 1}, {10, 1}}));
  log.Add(3, Set({{0, 1}}));
  log.Add(4, Set({{20, 1}, {30, 1}}));
  // Cuts 2 and 3 are one entry: a reader of cut 2 is told of more than has changed.
  EXPECT_THAT(*log.Between(2, 4),
              ElementsAre(Extent{0, 1}, Extent{10, 1}, Extent{20, 1}, Extent{30, 1}));
  EXPECT_THAT(*log.Between(3, 4), ElementsAre(Extent{20, 1}, Extent{30, 1}));
}

TEST(ChangeLogTest, CutsThatChangeNothingAreBoundedToo) {
  ChangeLog log(100);
  log.Start(1);
  for (CutNumber cut = 2; cut <= 1001; ++cut) log.Add(cut, ExtentSet());
  EXPECT_THAT(*log.Between(901, 1001), IsEmpty());
  EXPECT_THAT(*log.Between(1, 1001), IsEmpty());
  log.Add(1002, Set({{0, 1}}));
  EXPECT_THAT(*log.Between(1001, 1002), ElementsAre(Extent{0, 1}));
}

TEST(ChangeLogTest, ASmallerBoundHoldsFromTheNextCutOn) {
  ChangeLog log;
  log.Start(1);
  log.Add(2, Set({{0, 1}}));
  log.Add(3, Set({{10, 1}}));
  log.Add(4, Set({{20, 1}}));
  log.SetExtentsMax(6);
  EXPECT_THAT(*log.Between(3, 4), ElementsAre(Extent{20, 1}));
  log.Add(5, Set({{30, 1}}));
  EXPECT_THAT(*log.Between(3, 4), ElementsAre(Extent{0, 1}, Extent{10, 1}, Extent{20, 1}));
  EXPECT_THAT(*log.Between(4, 5), ElementsAre(Extent{30, 1}));
}

TEST(ChangeLogTest, OneCutThatIsTooMuchMakesItForget) {
  ChangeLog log(3);
  log.Start(1);
  log.Add(2, Set({{0, 1}, {10, 1}, {20, 1}}));
  EXPECT_FALSE(IsKnown(log, 1, 2));
  EXPECT_TRUE(IsKnown(log, 2, 2));
  log.Add(3, Set({{5, 1}}));
  EXPECT_THAT(*log.Between(2, 3), ElementsAre(Extent{5, 1}));
}

class ChangeLogOfLayersTest : public testing::Test {
 protected:
  ChangeLogOfLayersTest() : tree_(*env_.OpenTree("/")), budget_(1 << 20) {
    env_.SetTime([this] { return now_; });
  }
  CutLayer Layer() { return CutLayer(budget_, *tree_, "d"); }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  MemoryBudget budget_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  ChangeLog log_;
};

TEST_F(ChangeLogOfLayersTest, ALayerChangesWhatItStagesWritesAndCutsOff) {
  CutLayer layer = Layer();
  layer.data.AddDirect({100, 10});
  ASSERT_TRUE(layer.data.Put({0, 5}, 0).ok());
  ASSERT_TRUE(layer.data.Truncate(150).ok());
  log_.Follow(1);
  log_.AddLayer(2, layer, 200, env_);
  EXPECT_THAT(*log_.Between(1, 2), ElementsAre(Extent{0, 5}, Extent{100, 10}, Extent{150, 50}));
}

TEST_F(ChangeLogOfLayersTest, ANewGenerationMayDifferInAnyByte) {
  CutLayer layer = Layer();
  layer.begins_generation = true;
  log_.Follow(1);
  log_.AddLayer(2, layer, 0, env_);
  EXPECT_FALSE(IsKnown(log_, 1, 2));
  EXPECT_TRUE(IsKnown(log_, 2, 2));
}

TEST_F(ChangeLogOfLayersTest, NobodyAskedSoNothingIsNoted) {
  log_.AddLayer(2, Layer(), 0, env_);
  EXPECT_FALSE(log_.started());
}

TEST_F(ChangeLogOfLayersTest, FollowersThatDoNotComeBackAreNotExpectedForEver) {
  log_.Expect(1, now_);
  now_ += ChangeLog::kReturnMax;
  log_.AddLayer(2, Layer(), 0, env_);
  EXPECT_TRUE(IsKnown(log_, 1, 2));
  now_ += absl::Seconds(1);
  log_.AddLayer(3, Layer(), 0, env_);
  EXPECT_FALSE(log_.started());
}

TEST_F(ChangeLogOfLayersTest, AFollowerThatCameBackFindsTheCutsSinceTheStart) {
  log_.Expect(1, now_);
  log_.AddLayer(2, Layer(), 0, env_);
  log_.Follow(2);
  now_ += 2 * ChangeLog::kReturnMax;
  log_.AddLayer(3, Layer(), 0, env_);
  EXPECT_TRUE(IsKnown(log_, 1, 3));
}

}  // namespace
}  // namespace h5mirror::store
