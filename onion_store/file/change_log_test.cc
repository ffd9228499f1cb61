#include "onion_store/file/change_log.h"

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
  // 2 and 3 are one: who has 2 is told of more than has changed.
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

}  // namespace
}  // namespace h5mirror::store
