#include "server/state/mirror_states.h"
#include "base/testing/fake_clock.h"

#include <gtest/gtest.h>

#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

class MirrorStatesTest : public ::testing::Test {
 protected:
  MirrorStatesTest() {
    info_.file_id.fill(7);
    info_.last_cut = 12;
  }

  v1::MirrorState State() { return states_.StatusOf(info_).state(); }
  v1::MirrorStatus Resyncing(int64_t sent) {
    v1::MirrorStatus status;
    status.set_state(v1::MIRROR_STATE_RESYNCING);
    status.set_resync_total_bytes(100);
    status.set_resync_sent_bytes(sent);
    status.set_pending_bytes(100 - sent);
    status.set_pending_cuts(3);
    *status.mutable_pending_since_time() = ToProto(clock_.Now());
    return status;
  }

  FakeClock clock_{absl::FromUnixSeconds(1'793'714'400)};
  MirrorStates states_{clock_, 2};
  store::FileInfo info_;
};

TEST_F(MirrorStatesTest, AFileThatWasClosedIsInSyncAndOthersAreUnknown) {
  EXPECT_EQ(State(), v1::MIRROR_STATE_UNSPECIFIED);
  info_.local.inode = 9;
  EXPECT_EQ(State(), v1::MIRROR_STATE_IN_SYNC);
}

TEST_F(MirrorStatesTest, AWriterIsConnectedAndReports) {
  states_.Connected("x.h5", info_.file_id, 1);
  EXPECT_EQ(State(), v1::MIRROR_STATE_CONNECTED);
  states_.Reported("x.h5", info_.file_id, 1, Resyncing(40));
  EXPECT_EQ(states_.StatusOf(info_).resync_sent_bytes(), 40);
  states_.Reported("x.h5", info_.file_id, 1, Resyncing(60));
  EXPECT_EQ(states_.StatusOf(info_).resync_sent_bytes(), 60);
  states_.Ended(info_.file_id, 1);
  EXPECT_EQ(State(), v1::MIRROR_STATE_UNSPECIFIED);
}

TEST_F(MirrorStatesTest, ALostWriterLeavesADegradedFileUntilOneComes) {
  states_.Connected("x.h5", info_.file_id, 1);
  states_.Lost("x.h5", info_, 1, "gone");
  EXPECT_EQ(State(), v1::MIRROR_STATE_DEGRADED);
  EXPECT_NE(states_.StatusOf(info_).since_time().seconds(), 0);
  clock_.Advance(absl::Seconds(90));
  EXPECT_EQ(states_.Sum().lag, absl::Seconds(90));
  states_.Connected("x.h5", info_.file_id, 2);
  EXPECT_EQ(State(), v1::MIRROR_STATE_CONNECTED);
  EXPECT_EQ(states_.Sum().lag, absl::ZeroDuration());
}

TEST_F(MirrorStatesTest, WhatAWriterThatWasReplacedSaysOrSuffersIsNotHeard) {
  states_.Connected("x.h5", info_.file_id, 1);
  states_.Connected("x.h5", info_.file_id, 2);
  states_.Reported("x.h5", info_.file_id, 1, Resyncing(1));
  states_.Lost("x.h5", info_, 1, "gone");
  EXPECT_EQ(State(), v1::MIRROR_STATE_CONNECTED);
}

TEST_F(MirrorStatesTest, DivergedLastsUntilASessionMatchesOrTheFileIsAnother) {
  states_.Diverged("x.h5", info_, "it was changed");
  EXPECT_EQ(State(), v1::MIRROR_STATE_DIVERGED);
  EXPECT_EQ(states_.StatusOf(info_).detail(), "it was changed");
  info_.local.inode = 9;  // Adopted.
  EXPECT_EQ(State(), v1::MIRROR_STATE_IN_SYNC);
  states_.Diverged("x.h5", info_, "it was changed");
  states_.Connected("x.h5", info_.file_id, 3);
  EXPECT_EQ(State(), v1::MIRROR_STATE_CONNECTED);
}

TEST_F(MirrorStatesTest, DegradedLastsUntilTheFileIsAnother) {
  info_.local.inode = 9;
  const auto lose = [this] {
    states_.Connected("x.h5", info_.file_id, 1);
    states_.Lost("x.h5", info_, 1, "gone");
    ASSERT_EQ(State(), v1::MIRROR_STATE_DEGRADED);
    clock_.Advance(absl::Seconds(1));
    ASSERT_EQ(states_.Sum().lag, absl::Seconds(1));
  };
  lose();
  info_.local.mtime_ns = 5;  // Adopted.
  EXPECT_EQ(State(), v1::MIRROR_STATE_IN_SYNC);
  lose();
  info_.last_cut = 13;  // Rolled back, and nobody asks for its status.
  states_.Settle(info_);
  EXPECT_EQ(states_.Sum().lag, absl::ZeroDuration());
  lose();
  states_.Forget(info_.file_id);  // Removed.
  EXPECT_EQ(states_.Sum().lag, absl::ZeroDuration());
}

TEST_F(MirrorStatesTest, ALostWritersFileThatIsFoundEqualIsInSync) {
  states_.Connected("x.h5", info_.file_id, 1);
  states_.FoundEqual("x.h5", info_.file_id);
  EXPECT_EQ(State(), v1::MIRROR_STATE_CONNECTED);
  states_.Lost("x.h5", info_, 1, "gone");
  states_.FoundEqual("x.h5", info_.file_id);
  EXPECT_EQ(State(), v1::MIRROR_STATE_UNSPECIFIED);
  info_.newest_version.version = 4;
  info_.newest_version.cut = info_.last_cut;
  info_.last_check = store::CheckInfo{.time = clock_.Now(), .version = 4};
  EXPECT_EQ(State(), v1::MIRROR_STATE_IN_SYNC);
  info_.last_check->differing_bytes = 4096;
  EXPECT_EQ(State(), v1::MIRROR_STATE_UNSPECIFIED);
  info_.last_check->version = 3;
  info_.last_check->differing_bytes = 0;
  EXPECT_EQ(State(), v1::MIRROR_STATE_UNSPECIFIED);
  states_.Diverged("x.h5", info_, "it was changed");
  ASSERT_EQ(State(), v1::MIRROR_STATE_DIVERGED);
  states_.FoundEqual("x.h5", info_.file_id);  // Recovered: nothing on the server has changed.
  EXPECT_NE(State(), v1::MIRROR_STATE_DIVERGED);
  EXPECT_EQ(states_.Sum().files.count(v1::MIRROR_STATE_DIVERGED), 0u);
}

TEST_F(MirrorStatesTest, WhatStandsWithoutAWriterOutlivesARestart) {
  EXPECT_FALSE(states_.TakeNews().has_value());
  states_.Connected("y.h5", Bytes16{}, 1);
  EXPECT_FALSE(states_.TakeNews().has_value()) << "a writer reports anew";
  states_.Diverged("x.h5", info_, "it was \"changed\"\n\xff");
  const std::optional<std::string> news = states_.TakeNews();
  ASSERT_TRUE(news.has_value());
  EXPECT_FALSE(states_.TakeNews().has_value());

  clock_.Advance(absl::Hours(1));
  MirrorStates later(clock_);
  later.Restore(*news);
  EXPECT_EQ(later.Sum().files.size(), 1u);
  const v1::MirrorStatus status = later.StatusOf(info_);
  EXPECT_EQ(status.state(), v1::MIRROR_STATE_DIVERGED);
  EXPECT_EQ(FromProto(status.since_time()), clock_.Now() - absl::Hours(1));
  EXPECT_EQ(status.detail().substr(0, 15), "it was \"changed");
  EXPECT_FALSE(later.TakeNews().has_value());
  later.Connected("x.h5", info_.file_id, 9);
  EXPECT_EQ(later.TakeNews().value_or("none"), "[]\n") << "resolved";
}

TEST_F(MirrorStatesTest, ARestoredStateOfAFileThatHasChangedSinceCountsNoMore) {
  states_.Diverged("x.h5", info_, "it was changed");
  MirrorStates later(clock_);
  later.Restore(states_.TakeNews().value_or(""));
  info_.last_cut = 13;
  EXPECT_EQ(later.StatusOf(info_).state(), v1::MIRROR_STATE_UNSPECIFIED);
  EXPECT_TRUE(later.Sum().files.empty());
}

TEST_F(MirrorStatesTest, OfNonsenseNothingIsTaken) {
  for (const char* text :
       {"", "[", "{}", "[1]", R"([{"file_id":"xy","state":"diverged"}])",
        R"([{"file_id":"00000000000000000000000000000001","state":"connected"}])",
        R"([{"file_id":"00000000000000000000000000000001"}])"}) {
    MirrorStates states(clock_);
    states.Restore(text);
    EXPECT_TRUE(states.Sum().files.empty()) << text;
  }
}

TEST_F(MirrorStatesTest, SumsAreOfTheFileThatLagsMost) {
  Bytes16 other{};
  states_.Connected("x.h5", info_.file_id, 1);
  states_.Connected("y.h5", other, 1);
  states_.Reported("x.h5", info_.file_id, 1, Resyncing(10));
  states_.Reported("y.h5", other, 1, Resyncing(70));
  clock_.Advance(absl::Seconds(5));
  const MirrorSummary sum = states_.Sum();
  EXPECT_EQ(sum.files.at(v1::MIRROR_STATE_RESYNCING), 2u);
  EXPECT_EQ(sum.lag_bytes, 90);
  EXPECT_EQ(sum.lag_cuts, 3);
  EXPECT_EQ(sum.lag, absl::Seconds(5));
}

TEST_F(MirrorStatesTest, FilesWithoutAWriterAreForgottenFirst) {
  for (uint8_t n = 1; n <= 9; ++n) {
    Bytes16 file_id{};
    file_id[0] = n;
    states_.Connected("f.h5", file_id, 1);
    info_.file_id = file_id;
    if (n > 1) states_.Lost("f.h5", info_, 1, "gone");
  }
  const MirrorSummary sum = states_.Sum();
  EXPECT_EQ(sum.files.at(v1::MIRROR_STATE_CONNECTED), 1u);
  EXPECT_EQ(sum.files.at(v1::MIRROR_STATE_DEGRADED), 1u);
}

TEST(CheckMirrorStatusTest, OnlyAConnectedWritersStatesAndNoNegativeNumbers) {
  v1::MirrorStatus status;
  EXPECT_FALSE(CheckMirrorStatus(status).ok());
  status.set_state(v1::MIRROR_STATE_CONNECTED);
  EXPECT_TRUE(CheckMirrorStatus(status).ok());
  status.set_pending_bytes(-1);
  EXPECT_FALSE(CheckMirrorStatus(status).ok());
  status.set_pending_bytes(0);
  status.set_detail(std::string(1001, 'x'));
  EXPECT_FALSE(CheckMirrorStatus(status).ok());
  status.Clear();
  status.set_state(v1::MIRROR_STATE_DIVERGED);
  EXPECT_FALSE(CheckMirrorStatus(status).ok());
}

}  // namespace
}  // namespace h5mirror::server
