#include "cluster/watcher.h"

#include "base/testing/fake_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WatcherTest : public ::testing::Test {
 protected:
  WatcherTest() { Put("b", ServerState::kUp); }

  void Put(const std::string& id, ServerState state, uint64_t epoch = 1) {
    view_.servers[id] = {epoch, state, "", id, {}};
  }
  void BeatOf(const std::string& id) { ++view_.beats[id].number; }
  // A second passes, with a beat of this server, and a look at the registry.
  std::vector<std::string> Second() {
    clock_.Advance(absl::Seconds(1));
    ++own_.succeeded;
    return watcher_.Observe(view_, "a", own_);
  }
  std::vector<std::string> Seconds(int count) {
    std::vector<std::string> silent;
    for (int i = 0; i < count; ++i) silent = Second();
    return silent;
  }

  FakeClock clock_;
  Watcher watcher_{clock_, Timing()};
  ClusterView view_;
  OwnBeats own_;
};

TEST_F(WatcherTest, AServerIsSilentAfterFiveBeatsOfOurs) {
  EXPECT_THAT(Seconds(5), IsEmpty()) << "the first look begins the count";
  EXPECT_THAT(Second(), ElementsAre("b"));
  EXPECT_THAT(Second(), ElementsAre("b"));
}

TEST_F(WatcherTest, AChangedBeatBeginsTheCountAgain) {
  Seconds(5);
  BeatOf("b");
  EXPECT_THAT(Seconds(5), IsEmpty());
  EXPECT_THAT(Second(), ElementsAre("b"));
}

// A late beat may bring an older number back.
TEST_F(WatcherTest, AnySignOfLifeCounts) {
  view_.beats["b"].number = 7;
  Seconds(3);
  view_.beats["b"].number = 6;
  EXPECT_THAT(Seconds(5), IsEmpty());
}

TEST_F(WatcherTest, ANewLifeOfTheServerBeginsTheCountAgain) {
  Seconds(5);
  Put("b", ServerState::kUp, 2);
  EXPECT_THAT(Seconds(5), IsEmpty());
}

TEST_F(WatcherTest, BeatsWithoutTimeDoNotCount) {
  for (int i = 0; i < 50; ++i) {
    ++own_.succeeded;
    EXPECT_THAT(watcher_.Observe(view_, "a", own_), IsEmpty());
  }
}

TEST_F(WatcherTest, TimeWithoutBeatsDoesNotCount) {
  Second();
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(watcher_.Observe(view_, "a", own_), IsEmpty());
  EXPECT_THAT(Seconds(4), IsEmpty());
  EXPECT_THAT(Second(), ElementsAre("b"));
}

TEST_F(WatcherTest, AFailedBeatOfOursBeginsTheCountAgain) {
  Seconds(5);
  ++own_.failed;
  EXPECT_THAT(Seconds(5), IsEmpty());
  EXPECT_THAT(Second(), ElementsAre("b"));
}

TEST_F(WatcherTest, WhatIsForgottenIsCountedAgain) {
  Seconds(5);
  watcher_.Forget();
  own_ = {};
  EXPECT_THAT(Seconds(5), IsEmpty());
  EXPECT_THAT(Second(), ElementsAre("b"));
}

TEST_F(WatcherTest, TheTimeOfDayDoesNotMatter) {
  Second();
  clock_.SetNow(absl::UnixEpoch() + absl::Hours(24));
  EXPECT_THAT(Seconds(4), IsEmpty());
}

TEST_F(WatcherTest, OnlyServersThatAreAliveAreJudged) {
  Put("a", ServerState::kUp);
  Put("c", ServerState::kDraining);
  Put("d", ServerState::kGone);
  Put("e", ServerState::kDead);
  Put("f", ServerState::kFenced);
  EXPECT_THAT(Seconds(6), ElementsAre("b", "c"));
}

TEST_F(WatcherTest, AServerThatWasNotThereMeanwhileIsSeenForTheFirstTime) {
  Seconds(5);
  view_.servers.clear();
  Second();
  Put("b", ServerState::kUp);
  EXPECT_THAT(Seconds(5), IsEmpty());
}

}  // namespace
}  // namespace h5mirror::cluster
