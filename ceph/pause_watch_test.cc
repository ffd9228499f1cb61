#include "ceph/pause_watch.h"

#include "base/testing/fake_clock.h"
#include "gtest/gtest.h"

namespace h5mirror::ceph {
namespace {

constexpr absl::Duration kMax = absl::Minutes(15);

class PauseWatchTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  PauseWatch watch_{clock_, kMax};
};

TEST_F(PauseWatchTest, AnIdleProcessThatBeatsIsFine) {
  for (int second = 0; second < 7200; ++second) {
    clock_.Advance(absl::Seconds(1));
    watch_.Beat();
  }
  EXPECT_FALSE(watch_.is_too_long());
}

TEST_F(PauseWatchTest, AShortPauseIsForgotten) {
  clock_.Advance(kMax);
  EXPECT_FALSE(watch_.is_too_long());
  watch_.Beat();
  clock_.Advance(kMax);
  EXPECT_FALSE(watch_.is_too_long());
}

TEST_F(PauseWatchTest, NoBeatCountsAfterALongPause) {
  clock_.Advance(kMax + absl::Seconds(1));
  EXPECT_TRUE(watch_.is_too_long()) << "before any beat";
  watch_.Beat();
  EXPECT_TRUE(watch_.is_too_long());
  EXPECT_EQ(watch_.Pause(), kMax + absl::Seconds(1));
}

TEST_F(PauseWatchTest, TheTimeOfDayDoesNotMatter) {
  clock_.SetNow(absl::UnixEpoch() + absl::Hours(24));
  EXPECT_FALSE(watch_.is_too_long());
}

}  // namespace
}  // namespace h5mirror::ceph
