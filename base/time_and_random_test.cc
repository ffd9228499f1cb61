#include <algorithm>

#include "base/random.h"
#include "base/strings.h"
#include "base/testing/fake_clock.h"
#include "base/version.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

TEST(ClockTest, FakeTimeMovesOnlyWhenTold) {
  FakeClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
}

TEST(ClockTest, SettingTheTimeOfDayLeavesMonotonicTimeAlone) {
  FakeClock clock;
  clock.SetNow(absl::FromUnixSeconds(7));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(7));
  EXPECT_EQ(clock.Monotonic(), absl::ZeroDuration());
}

TEST(ClockTest, SystemTimeNeverGoesBack) {
  SystemClock clock;
  const absl::Duration before = clock.Monotonic();
  EXPECT_LE(before, clock.Monotonic());
  EXPECT_GT(clock.Now(), absl::FromUnixSeconds(1'600'000'000));
}

TEST(RandomTest, IdentitiesDiffer) { EXPECT_NE(RandomBytes16(), RandomBytes16()); }

TEST(StringsTest, StrCatTakesEveryKindOfString) {
  const std::string_view view = "b";
  EXPECT_EQ(StrCat("a", view, std::string("c"), absl::string_view("d"), 5), "abcd5");
}

TEST(VersionTest, IsThreeNumbers) {
  EXPECT_EQ(std::count(kVersion.begin(), kVersion.end(), '.'), 2);
}

}  // namespace
}  // namespace h5mirror
