// Power losses. H5M_CRASH_STATES: how many different states in all; H5M_SEED: where it starts.
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/crash/check_store.h"
#include "tests/crash/explorer.h"
#include "tests/crash/settings.h"

namespace h5mirror::store {
namespace {

class CrashTest : public testing::TestWithParam<std::string> {};

TEST_P(CrashTest, EveryStateKeepsWhatWasAcked) {
  const size_t wanted = CrashStateCount() / AllScenarios().size() + 1;
  Exploration found = Explore(*FindScenario(GetParam()), FirstSeed(), wanted);
  EXPECT_EQ(found.violation, "");
  EXPECT_TRUE(found.state_count >= wanted || !found.violation.empty()) << found.state_count;
  std::printf("%s: %zu states, %zu checks\n", GetParam().c_str(), found.state_count,
              found.check_count);
  RecordProperty("states", static_cast<int>(found.state_count));
}

TEST_P(CrashTest, RottenBytesNeverPassForOthers) {
  const size_t wanted = CrashStateCount() / AllScenarios().size() / 20 + 1;
  Exploration found = ExploreRot(*FindScenario(GetParam()), FirstSeed(), wanted);
  EXPECT_EQ(found.violation, "") << "scenario " << GetParam() << ", H5M_SEED " << FirstSeed();
  EXPECT_GT(found.state_count, wanted / 2);
}

INSTANTIATE_TEST_SUITE_P(, CrashTest, testing::ValuesIn(ScenarioNames()),
                         [](const auto& info) { return info.param; });

TEST(CrashReplayTest, ReplaysAState) {
  const char* text = std::getenv("H5M_CRASH_REPLAY");
  if (text == nullptr) GTEST_SKIP() << "H5M_CRASH_REPLAY names no state";
  std::optional<Replay> replay = ParseReplay(text);
  ASSERT_TRUE(replay.has_value()) << text;
  Recording recording(*replay->scenario, replay->seed);
  absl::Status end = recording.CheckEnd();
  ASSERT_TRUE(end.ok()) << end;
  auto crashed = recording.Crash(replay->point);
  const std::string directory = testing::TempDir() + "/h5mirror-crash-replay";
  ASSERT_TRUE(SaveTree(*crashed, directory).ok());
  absl::Status kept = recording.CheckCrash(*crashed, replay->point, Recording::Losses::kTwo);
  EXPECT_TRUE(kept.ok()) << kept << "\nat " << recording.Describe(replay->point)
                         << "\nwhat the power loss left is in " << directory;
}

// Without this a replay would check another state.
TEST(CrashReplayTest, ScenariosInStepMakeTheSameRecordAgain) {
  for (const Scenario& scenario : AllScenarios()) {
    if (scenario.pace == Pace::kConcurrent) continue;
    Recording first(scenario, 1), again(scenario, 1);
    EXPECT_EQ(first.env().change_count(), again.env().change_count()) << scenario.name;
  }
}

}  // namespace
}  // namespace h5mirror::store
