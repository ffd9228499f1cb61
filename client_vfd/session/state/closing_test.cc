#include "client_vfd/session/state/closing.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

FileStat StatOf(int64_t size_bytes) {
  FileStat stat;
  stat.size_bytes = size_bytes;
  return stat;
}

TEST(ClosingTest, TheLockIsGivenBackAfterTheSeal) {
  Closing closing;
  closing.Seal();
  EXPECT_FALSE(closing.is_unlocked());
  closing.Unlock();
  EXPECT_TRUE(closing.is_unlocked());
}

TEST(ClosingTest, AFileThatIsGivenUpIsUnlockedWithoutASeal) {
  Closing closing;
  closing.Unlock();
  EXPECT_TRUE(closing.is_unlocked());
  EXPECT_EQ(closing.stat(), std::nullopt);
}

TEST(ClosingTest, AnotherProgramMayHaveTheFileOnceItIsUnlocked) {
  Closing closing;
  closing.Seal();
  closing.Unlock();
  EXPECT_FALSE(closing.is_anothers());
  closing.LoseFile();
  EXPECT_TRUE(closing.is_anothers());
  EXPECT_TRUE(closing.is_unlocked());
}

TEST(ClosingTest, TheFileCountsAsItWasClosed) {
  Closing closing;
  closing.Seal();
  closing.SetStat(StatOf(100));
  EXPECT_TRUE(closing.IsAsClosed(StatOf(100)));
  EXPECT_FALSE(closing.IsAsClosed(StatOf(101)));
}

TEST(ClosingTest, AFileThatCouldNotBeLookedAtIsTakenForTheSame) {
  Closing closing;
  EXPECT_TRUE(closing.IsAsClosed(StatOf(100))) << "not closed yet";
  closing.SetStat(StatOf(100));
  closing.SetStat(std::nullopt);
  EXPECT_TRUE(closing.IsAsClosed(StatOf(101)));
}

TEST(ClosingTest, ACloseWaitsOnce) {
  Closing closing;
  EXPECT_FALSE(closing.has_waited_enough());
  closing.Spend();
  EXPECT_TRUE(closing.has_waited_enough());
}

TEST(ClosingTest, TheServerHearsOfAnUnfinishedFileOnce) {
  Closing closing;
  closing.SetUnfinished(true);
  EXPECT_TRUE(closing.is_unfinished());
  closing.SetUnfinished(false);
  EXPECT_FALSE(closing.is_unfinished());
}

}  // namespace
}  // namespace h5mirror::vfd
