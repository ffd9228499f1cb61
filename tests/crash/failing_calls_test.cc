// Each call of the scenarios fails once, or from then on until the disk is well again: an error
// says so, nothing that was acked is lost, and the file can be used.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/strings.h"
#include "gtest/gtest.h"
#include "tests/crash/check_store.h"
#include "tests/crash/explorer.h"
#include "tests/crash/settings.h"

namespace h5mirror::store {
namespace {

constexpr char kIoError[] = "Input/output error";
constexpr char kNoSpace[] = "No space left on device";
// A full disk is tried again after 5 s: few tests wait for that.
constexpr absl::Duration kPatience = absl::Milliseconds(100);
constexpr int kAtOnce = 8;

enum class Fault : uint8_t {
  kOneError,  // EIO: a write may be short, what a sync should have covered is lost
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
  // What `player` met must tell people what happened, and to what.
  static bool IsGoodError(const absl::Status& status) {
    if (status.ok() || absl::IsDeadlineExceeded(status)) return true;
    return !absl::IsDataLoss(status) && (absl::StrContains(status.message(), kIoError) ||
                                         absl::StrContains(status.message(), kNoSpace) ||
                                         absl::StrContains(status.message(), ".h5"));
  }
  // What the background met may show only now: a file that failed must be opened again. False where
  // it waits to try a full disk again.
  static bool IsStill(Store& store, const Promises& promised) {
    for (const auto& [name, file] : promised.files) {
      auto opened = store.OpenFile(name);
      if (!opened.ok()) continue;
      if (absl::IsDeadlineExceeded((*opened)->WaitApplied(kPatience))) return false;
    }
    return true;
  }
  // What is wrong afterwards; "": nothing.
  std::string Play(Fault fault, uint64_t call) const {
    FaultEnv env;
    env.SetGrowsAhead(call % 2 == 0);  // as in CephFS
    Player player(env, FirstSeed(), scenario_.options, Pace::kConcurrent);
    player.SetPatience(kPatience);
    Plant(env, fault, call);
    player.Open();
    scenario_.play(player);
    if (!IsGoodError(player.status())) return StrCat("told: ", player.status().ToString());
    Lift(env);
    player.Abandon();
    Promises promised = player.promises().At(SIZE_MAX);
    if (player.store() != nullptr && IsStill(*player.store(), promised)) {
      absl::Status kept = CheckStore(*player.store(), env, call, &promised);
      // The file may die only now of what it met before.
      if (absl::StrContains(kept.message(), "must be opened again")) {
        kept = CheckStore(*player.store(), env, call, &promised);
      }
      if (!kept.ok()) {
        return StrCat(kept.ToString(), "\nin the store that met it in step \"",
                      player.steps().back().text, "\": ", player.status().ToString());
      }
    }
    player.Leave();
    // In turns, so that each fault meets both; at many states every one does.
    const bool power_loss = call / std::size(kFaults) % 2 == 0;
    if (power_loss || HasAllFaults()) {
      CrashPoint end;
      end.change_count = env.change_count();
      end.seed = call;
      // What is worst for an attempt that was made again, and what few choices of a seed hit.
      if (call % 3 == 0 || HasAllFaults()) end.data = Unsynced::kDropped;
      Promises again = promised.At(SIZE_MAX);
      absl::Status kept = CheckDisk(*env.Crash(end), scenario_.options, call + 1, &again);
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
  // Each call with one of the faults, which one goes round with the seed.
  const uint64_t step = CallsStep();
  const size_t faults = HasAllFaults() ? std::size(kFaults) : 1;
  const uint64_t first = FirstSeed() % step;
  const uint64_t play_count =
      first < call_count_ ? ((call_count_ - 1 - first) / step + 1) * faults : 0;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  auto play = [&] {
    for (uint64_t i = next++; i < play_count && !failed; i = next++) {
      const uint64_t call = first + i / faults * step;
      const size_t fault = (call / step + FirstSeed() + i % faults) % std::size(kFaults);
      const std::string wrong = Play(kFaults[fault], call);
      if (wrong.empty()) continue;
      failed = true;
      ADD_FAILURE() << wrong << "\nscenario " << scenario_.name << ", H5M_SEED " << FirstSeed()
                    << ", fault " << fault << " at call " << call << " of " << call_count_;
    }
  };
  // Most of the time each waits for a background that has met its fault.
  std::vector<std::thread> threads;
  for (int i = 0; i < kAtOnce; ++i) threads.emplace_back(play);
  for (std::thread& thread : threads) thread.join();
  std::printf("%s: %zu of %zu calls failed\n", scenario_.name, static_cast<size_t>(play_count),
              static_cast<size_t>(call_count_));
}

INSTANTIATE_TEST_SUITE_P(, FailingCallsTest, testing::ValuesIn(ScenarioNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace h5mirror::store
