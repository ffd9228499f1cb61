#include "client_vfd/session/state/group_progress.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

GroupCut Cut(uint64_t number) {
  GroupCut cut;
  cut.number = number;
  return cut;
}

TEST(GroupProgressTest, ANumberIsDurableWithItsBarrier) {
  GroupProgress progress;
  progress.Set(Cut(1));
  progress.Sent(1, 1);
  progress.Sent(3, 2);
  progress.OnDurable(2);
  EXPECT_EQ(progress.durable_number(), 1u);
  progress.OnDurable(3);
  EXPECT_EQ(progress.durable_number(), 2u);
}

TEST(GroupProgressTest, ACutThatIsSentAgainIsTheSameNumber) {
  GroupProgress progress;
  progress.Sent(1, 1);
  progress.Sent(2, 1);
  progress.OnDurable(2);
  EXPECT_EQ(progress.durable_number(), 1u);
}

TEST(GroupProgressTest, TheNewestCutIsLackedUntilItIsDurable) {
  GroupProgress progress;
  EXPECT_FALSE(progress.LacksNewest());
  progress.Set(Cut(1));
  EXPECT_TRUE(progress.LacksNewest());
  progress.Sent(1, 1);
  progress.OnDurable(1);
  EXPECT_FALSE(progress.LacksNewest());
  progress.Set(Cut(2));
  EXPECT_TRUE(progress.LacksNewest());
  progress.Set(std::nullopt);
  EXPECT_FALSE(progress.LacksNewest());
}

}  // namespace
}  // namespace h5mirror::vfd
