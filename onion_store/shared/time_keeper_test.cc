// Clocks that are wrong, set right, or set wrong: the times that the store stamps, and what may
// expire.
#include "onion_store/shared/time_keeper.h"

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/store_health.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNote[] = ".h5mirror/clock";
constexpr absl::Duration kDay = absl::Hours(24);

class TimeKeeperTest : public testing::Test {
 protected:
  TimeKeeperTest() : tree_(*env_.OpenTree("/")) {
    env_.SetTime([this] { return machine_; });
    env_.SetBootTime([this] { return BootTime{boot_id_, since_boot_}; });
    EXPECT_TRUE(tree_->MakeDirectory(".h5mirror", 0700).ok());
    Start();
  }
  void Start(std::optional<absl::Time> at_least = std::nullopt) {
    keeper_ = std::make_unique<TimeKeeper>(
        env_, [this](std::string text) { told_.push_back(std::move(text)); });
    keeper_->Open(*tree_, kNote, at_least);
  }
  // The server, and the machine with it, is off for so long.
  void Reboot(absl::Duration off) {
    keeper_->Note();
    machine_ += off;
    since_boot_ = absl::Seconds(20);
    boot_id_ += "'";
    Start();
  }
  void Run(absl::Duration time) {
    for (absl::Duration step = absl::Minutes(30); time > absl::ZeroDuration(); time -= step) {
      machine_ += std::min(step, time);
      since_boot_ += std::min(step, time);
      keeper_->Now();
      keeper_->Tend();
    }
  }

  absl::Time machine_ = absl::FromUnixSeconds(1'790'000'000);  // 2026
  absl::Duration since_boot_ = absl::Hours(5);
  std::string boot_id_ = "a";
  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  std::vector<std::string> told_;
  std::unique_ptr<TimeKeeper> keeper_;
};

TEST_F(TimeKeeperTest, AClockThatRunsIsBelievedThroughRestarts) {
  for (int day = 0; day < 3; ++day) {
    Run(kDay);
    EXPECT_EQ(keeper_->Now(), machine_);
    keeper_->Note();
    machine_ += absl::Hours(10);  // The server alone was off.
    since_boot_ += absl::Hours(10);
    Start();
    EXPECT_THAT(keeper_->Doubt(), IsEmpty());
    Reboot(absl::Minutes(10));
    EXPECT_THAT(keeper_->Doubt(), IsEmpty());
  }
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(TimeKeeperTest, WithoutAClockThatNobodySetsTheMachinesIsTheTime) {
  env_.SetBootTime(nullptr);
  machine_ += 30 * 366 * kDay;
  EXPECT_EQ(keeper_->Now(), machine_);
  EXPECT_THAT(keeper_->Doubt(), IsEmpty());
}

TEST_F(TimeKeeperTest, AJumpOfYearsIsNotFollowedAndStoppedByARestartNeither) {
  Run(kDay);
  const absl::Time before = machine_;
  machine_ += 5 * 366 * kDay;
  EXPECT_EQ(keeper_->Now(), before);
  EXPECT_EQ(keeper_->Ahead(), 5 * 366 * kDay);
  EXPECT_THAT(keeper_->Doubt(), HasSubstr("by what is known"));
  Run(3 * kDay);
  EXPECT_EQ(keeper_->Now(), before + 3 * kDay) << "it goes on";
  keeper_->Note();
  Start();
  EXPECT_EQ(keeper_->Now(), before + 3 * kDay);
  Reboot(absl::Minutes(1));
  EXPECT_LT(keeper_->Now(), before + 4 * kDay);
  EXPECT_FALSE(keeper_->Doubt().empty());
  EXPECT_EQ(told_.size(), 3u) << "once for each start";
  EXPECT_THAT(told_[0], HasSubstr(kNote));
  machine_ -= 5 * 366 * kDay;
  EXPECT_EQ(keeper_->Now(), machine_);
  EXPECT_THAT(keeper_->Doubt(), IsEmpty());
  EXPECT_THAT(told_.back(), HasSubstr("right again"));
}

TEST_F(TimeKeeperTest, AJumpOfSomeDaysIsFollowedAndNothingExpiresUntilItHasHeld) {
  Run(kDay);
  machine_ += 2 * kDay;
  EXPECT_EQ(keeper_->Now(), machine_);
  EXPECT_THAT(keeper_->Doubt(), HasSubstr("went on by"));
  Run(absl::Minutes(30));
  Reboot(absl::ZeroDuration());
  EXPECT_THAT(keeper_->Doubt(), HasSubstr("before the restart"));
  Run(absl::Hours(2));
  EXPECT_THAT(keeper_->Doubt(), IsEmpty());
}

TEST_F(TimeKeeperTest, ASleepBetweenTheReadingsOfBothClocksIsNoClockThatWasSet) {
  Run(2 * kDay);
  for (const absl::Duration sleep : {absl::Minutes(1), absl::Hours(9)}) {
    env_.SetTime([this, sleeps = std::make_shared<int>(1), sleep] {
      const absl::Time read = machine_;
      if ((*sleeps)-- > 0) {
        machine_ += sleep;
        since_boot_ += sleep;
      }
      return read;
    });
    EXPECT_EQ(keeper_->Now(), machine_);
    EXPECT_THAT(keeper_->Doubt(), IsEmpty());
  }
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(TimeKeeperTest, AMachineThatWasOffForMonthsIsBelievedAndNothingExpiresForADay) {
  Run(kDay);
  Reboot(100 * kDay);
  EXPECT_EQ(keeper_->Now(), machine_);
  Run(absl::Hours(23));
  EXPECT_THAT(keeper_->Doubt(), HasSubstr("while the server was off"));
  Run(absl::Hours(2));
  EXPECT_THAT(keeper_->Doubt(), IsEmpty());
}

TEST_F(TimeKeeperTest, ABatteryThatIsEmptyDoesNotTurnTimeBackAndNtpSetsItRight) {
  Run(2 * kDay);
  const absl::Time off = machine_;
  Reboot(absl::ZeroDuration());
  for (const absl::Time wrong : {absl::UnixEpoch(), absl::FromUnixSeconds(4'080'000'000)}) {
    machine_ = wrong;
    boot_id_ += "'";
    keeper_->Note();
    Start();
    EXPECT_EQ(keeper_->Now(), off) << wrong;
    Run(absl::Minutes(5));
    EXPECT_FALSE(keeper_->Doubt().empty());
    machine_ = off + 3 * kDay;  // How long it was off.
    EXPECT_EQ(keeper_->Now(), machine_);
    EXPECT_FALSE(keeper_->Doubt().empty());
    Run(2 * absl::Hours(1));
    EXPECT_THAT(keeper_->Doubt(), IsEmpty());
    machine_ = off;
    boot_id_ += "'";
    keeper_->Note();
    ASSERT_TRUE(tree_->Remove(kNote).ok());
    Start();
    keeper_->Note();
  }
}

TEST_F(TimeKeeperTest, AFirstStartWithAWrongClockIsMendedWhenItIsSet) {
  for (const absl::Time wrong : {absl::UnixEpoch(), absl::FromUnixSeconds(4'080'000'000)}) {
    const absl::Time right = absl::FromUnixSeconds(1'790'000'000);
    ASSERT_TRUE(tree_->Remove(kNote).ok());
    machine_ = wrong;
    Start();
    EXPECT_EQ(keeper_->Now(), wrong) << "nobody knows better";
    machine_ = right;
    EXPECT_EQ(keeper_->Now(), right);
    EXPECT_FALSE(keeper_->Doubt().empty());
    Run(2 * kDay);
    EXPECT_THAT(keeper_->Doubt(), IsEmpty());
    // From now on the time is known: a clock set back to before it is not believed.
    machine_ = absl::FromUnixSeconds(1'704'067'300);
    EXPECT_EQ(keeper_->Now(), right + 2 * kDay);
  }
}

TEST_F(TimeKeeperTest, ARootOfAnOlderProgramTellsWhenItWasLastWritten) {
  ASSERT_TRUE(tree_->Remove(kNote).ok());
  const absl::Time written = machine_ - kDay;
  machine_ += 20 * 366 * kDay;
  Start(written);
  EXPECT_EQ(keeper_->Now(), written);
  ASSERT_TRUE(tree_->Remove(kNote).ok());
  machine_ -= 20 * 366 * kDay;
  Start(written);
  EXPECT_EQ(keeper_->Now(), machine_);
}

TEST_F(TimeKeeperTest, ANoteThatMakesNoSenseIsNone) {
  for (const char* text :
       {"", "{", "[]", "{\"format\":2}", "{\"format\":1,\"boot_id\":\"a\",\"time_ns\":-5}",
        "{\"format\":1,\"boot_id\":7,\"time_ns\":1,\"floor_ns\":1,\"since_boot_ns\":1,"
        "\"unsettled_ns\":1}"}) {
    auto file = *tree_->Open(kNote, OpenKind::kCreateFresh, 0600);
    ASSERT_TRUE(WriteAt(*file, 0, text).ok());
    Start();
    EXPECT_EQ(keeper_->Now(), machine_) << text;
    EXPECT_THAT(keeper_->Doubt(), IsEmpty()) << text;
  }
}

// The same in a store: the times of versions and removed files.
TEST(ClockTest, VersionsGoOnWithoutBeingStuckYearsAhead) {
  std::atomic<int64_t> machine_s{1'790'000'000}, boot_s{1000};
  FaultEnv env;
  env.SetTime([&] { return absl::FromUnixSeconds(machine_s); });
  env.SetBootTime([&] { return BootTime{"a", absl::Seconds(boot_s.load())}; });
  auto store = OpenStore(env, "/");
  StoreHealth* const health = StoreHealth::Of(*store);
  auto file = *store->OpenOrCreateFile("x.h5", 512);
  Writer writer(file, SessionStart::kContinue);
  const auto commit = [&](char byte) {
    ASSERT_TRUE(writer.Write(0, std::string(100, byte)).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  };
  const auto newest = [&] { return absl::ToUnixSeconds(file->GetVersion(0)->server_time); };
  const int64_t begin = machine_s;
  commit('a');
  constexpr int64_t kYears = 10 * 366 * 86400;
  machine_s += kYears;
  boot_s += 60;
  commit('b');
  EXPECT_GE(newest(), begin);
  EXPECT_LE(newest(), begin + 61);
  EXPECT_FALSE(health->DoubtOfTime().empty());
  EXPECT_EQ(health->ClockAhead(), absl::Seconds(kYears - 60));
  ASSERT_TRUE(writer.End().ok());
  file.reset();
  const auto removed = store->Remove("x.h5", Provenance(), 30 * absl::Hours(24));
  ASSERT_TRUE(removed.ok());
  EXPECT_LT(removed->expires, absl::FromUnixSeconds(begin) + 31 * absl::Hours(24));
  EXPECT_EQ(*store->PurgeRemoved(health->Now()), 0);
  ASSERT_TRUE(store->Undelete(removed->id, "").ok());
  machine_s = begin + 120;
  boot_s += 60;
  file = *store->OpenFile("x.h5");
  Writer again(file, SessionStart::kContinue, std::string(100, 'b'));
  ASSERT_TRUE(again.Write(0, "c").ok());
  ASSERT_TRUE(again.CutDurably(BarrierKind::kCommit).ok());
  EXPECT_EQ(newest(), begin + 120);
  EXPECT_TRUE(health->DoubtOfTime().empty());
  ASSERT_TRUE(again.End().ok());
}

}  // namespace
}  // namespace h5mirror::store
