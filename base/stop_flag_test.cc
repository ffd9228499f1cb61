#include "base/stop_flag.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

// Far beyond what any machine needs.
constexpr absl::Duration kLong = absl::Minutes(2);

TEST(StopFlagTest, AWaitEndsAtItsTimeout) {
  StopFlag flag;
  const absl::Time begun_at = absl::Now();
  EXPECT_FALSE(flag.AwaitSet(absl::Milliseconds(20)));
  EXPECT_GE(absl::Now() - begun_at, absl::Milliseconds(19));
  EXPECT_FALSE(flag.AwaitSet(absl::ZeroDuration()));
  EXPECT_FALSE(flag.AwaitSet(-absl::Hours(1)));
}

TEST(StopFlagTest, SetEndsAllWaits) {
  StopFlag flag;
  const absl::Time begun_at = absl::Now();
  std::thread waiting([&flag] { EXPECT_TRUE(flag.AwaitSet(kLong)); });
  flag.Set();
  waiting.join();
  EXPECT_TRUE(flag.AwaitSet(kLong));
  EXPECT_TRUE(flag.AwaitSet(-absl::Hours(1)));
  EXPECT_LT(absl::Now() - begun_at, kLong);
}

TEST(StopFlagTest, AWakeEndsOneWait) {
  StopFlag flag;
  const absl::Time begun_at = absl::Now();
  std::thread waiting([&flag] { EXPECT_FALSE(flag.AwaitSetOrWake(kLong)); });
  flag.Wake();
  waiting.join();
  EXPECT_FALSE(flag.AwaitSet(absl::ZeroDuration())) << "it is not set";
  flag.Wake();
  flag.Wake();
  EXPECT_FALSE(flag.AwaitSetOrWake(kLong));
  EXPECT_LT(absl::Now() - begun_at, kLong);
  EXPECT_FALSE(flag.AwaitSetOrWake(absl::Milliseconds(1))) << "both were of one wait";
  flag.Set();
  EXPECT_TRUE(flag.AwaitSetOrWake(kLong));
}

}  // namespace
}  // namespace h5mirror
