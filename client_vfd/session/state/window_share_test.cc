#include "client_vfd/session/state/window_share.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(WindowShareTest, TheSumIsWhatAllHoldNow) {
  std::atomic<int64_t> used{0};
  WindowShare one(used);
  WindowShare other(used);
  one.Hold(100);
  other.Hold(50);
  EXPECT_EQ(used, 150);
  one.Hold(10);
  EXPECT_EQ(used, 60);
}

TEST(WindowShareTest, AnothersCopiesTakeRoomToo) {
  std::atomic<int64_t> used{0};
  WindowShare one(used);
  const WindowShare other(used);
  one.Hold(60);
  EXPECT_TRUE(other.HasRoom(40, 100));
  EXPECT_FALSE(other.HasRoom(41, 100));
}

}  // namespace
}  // namespace h5mirror::vfd
