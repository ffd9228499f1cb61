// Each call of the scenarios fails once, or all calls from it on fail until the disk works again.
// An error says so, no acked byte is lost, and the file can be used.
#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "tests/crash/check_store.h"
#include "tests/crash/explorer.h"
#include "tests/crash/failing_play.h"
#include "tests/crash/settings.h"

namespace h5mirror::store {
namespace {

// A full disk is retried after 5 s: few tests wait for that.
constexpr absl::Duration kPatience = absl::Milliseconds(100);
// Each play mostly waits for a background that has met its fault.
constexpr int kAtOnce = 8;

enum class Fault : uint8_t {
  kOneError,  // EIO: a write may be short, bytes that a sync should cover are lost
  kOneFull,   // ENOSPC
  kDiskGone,  // EIO of all calls
  kDiskFull,  // ENOSPC of all writes
};
constexpr Fault kFaults[] = {Fault::kOneError, Fault::kOneFull, Fault::kDiskGone, Fault::kDiskFull};

class FailingCallsTest : public testing::TestWithParam<std::string> {
 protected:
  void Plant(FaultEnv& env, Fault fault, uint64_t call) const {
    switch (fault) {
      case Fault::kOneError:
        return env.FailCall(call, absl::InternalError(kIoError));
      case Fault::kOneFull:
        return env.FailCall(call, absl::ResourceExhaustedError(kNoSpace));
      case Fault::kDiskGone:
        return env.FailCalls(call, UINT64_MAX, absl::InternalError(kIoError));
      default:
        return env.SetCapacity(disk_bytes_ * call / call_count_);
    }
  }
  static void Lift(FaultEnv& env) {
    env.FailCalls(0, 0, absl::OkStatus());
    env.SetCapacity(UINT64_MAX);
  }
  void Measure() {
    FaultEnv env;
    Player player(env, FirstSeed(), scenario_.options, Pace::kConcurrent);
    player.Open();
    scenario_.play(player);
    player.Close();
    ASSERT_TRUE(player.status().ok()) << player.status();
    call_count_ = env.call_count();
    disk_bytes_ = env.used_bytes();
  }
  // The violation found afterwards; "": none.
  std::string Play(Fault fault, uint64_t call) const {
    FaultEnv env;
    // As in CephFS, or as on a local disk: each fault meets both, before either end.
    env.SetGrowsAhead(call / CallsStep() / (2 * std::size(kFaults)) % 2 == 0);
    Plant(env, fault, call);
    PlayEnd end =
        PlayOnFailing(env, scenario_,
                      {.seed = FirstSeed(), .choice = call, .patience = kPatience, .lift = [&env] {
                         Lift(env);
                       }});
    if (!end.wrong.empty()) return end.wrong;
    Promises& promised = end.promised;
    // In turns, so that each fault meets both; in a run of many states each call does.
    const bool power_loss = call / std::size(kFaults) % 2 == 0;
    if (power_loss || HasAllFaults()) {
      CrashPoint point;
      point.change_count = env.change_count();
      point.seed = call;
      // The worst case for a repeated attempt, and one that few seeds choose.
      if (call % 3 == 0 || HasAllFaults()) point.data = Unsynced::kDropped;
      Promises again = promised.At(SIZE_MAX);
      absl::Status kept = CheckDisk(*env.Crash(point), scenario_.options, call + 1, &again);
      if (!kept.ok()) return StrCat(kept.ToString(), "\nafter a power loss");
    }
    if (!power_loss || HasAllFaults()) {
      absl::Status kept = CheckDisk(env, scenario_.options, call + 2, &promised);
      if (!kept.ok()) return StrCat(kept.ToString(), "\nafter a restart");
    }
    return "";
  }

  const Scenario& scenario_ = *FindScenario(GetParam());
  uint64_t call_count_ = 1, disk_bytes_ = 0;
};

TEST_P(FailingCallsTest, LeaveTheHistoryWholeAndTheFileUsable) {
  ASSERT_NO_FATAL_FAILURE(Measure());
  // Each call with one of the faults; the seed shifts which one.
  const uint64_t step = CallsStep();
  const size_t faults = HasAllFaults() ? std::size(kFaults) : 1;
  const uint64_t first = FirstSeed() % step;
  const uint64_t play_count =
      first < call_count_ ? ((call_count_ - 1 - first) / step + 1) * faults : 0;
  const std::string wrong = PlayAll(play_count, kAtOnce, [&](uint64_t i) -> std::string {
    const uint64_t call = first + i / faults * step;
    const size_t fault = (call / step + FirstSeed() + i % faults) % std::size(kFaults);
    const std::string found = Play(kFaults[fault], call);
    if (found.empty()) return "";
    return StrCat(found, "\nscenario ", scenario_.name, ", H5M_SEED ", FirstSeed(), ", fault ",
                  fault, " at call ", call, " of ", call_count_);
  });
  EXPECT_EQ(wrong, "");
  std::printf("%s: %zu of %zu calls failed\n", scenario_.name, static_cast<size_t>(play_count),
              static_cast<size_t>(call_count_));
}

INSTANTIATE_TEST_SUITE_P(, FailingCallsTest, testing::ValuesIn(ScenarioNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace h5mirror::store
