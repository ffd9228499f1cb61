// Random histories: against a model, through crashes, through faults. Each failure prints the seed
// that replays it: H5M_SEED=N test_bin/onion_store_random_test.
#include <cstdlib>
#include <random>

#include "absl/time/clock.h"
#include "onion_store/testing/random_history.h"

namespace h5mirror::store {
namespace {

uint64_t FirstSeed() {
  const char* seed = std::getenv("H5M_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
}
int Repeat(int count) {
  const char* repeat = std::getenv("H5M_REPEAT");
  return repeat != nullptr ? std::atoi(repeat) : count;
}

// The versions that must be there after the first `changes` changes.
std::vector<VersionNumber> KeptBy(const RandomHistory& history, size_t changes) {
  std::vector<VersionNumber> kept;
  for (const auto& [version, acked_at] : history.kept()) {
    if (acked_at <= changes) kept.push_back(version);
  }
  return kept;
}

TEST(RandomHistoryTest, EveryVersionIsWhatTheModelSays) {
  int paused_reads = 0, pinned_reads = 0;
  for (int i = 0; i < Repeat(1000) && !testing::Test::HasFailure(); ++i) {
    uint64_t seed = FirstSeed() + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    FaultEnv env;
    RandomHistory history(env, seed, RandomHistory::Faults::kNone);
    history.Run(60);
    CutNumber needed = 0;
    for (const auto& acked : history.acked()) needed = std::max(needed, acked.cut);
    RandomHistory::Check(env, history.golden(), needed, KeptBy(history, SIZE_MAX));
    history.CheckTags();
    paused_reads += history.paused_read_count();
    pinned_reads += history.pinned_read_count();
  }
  EXPECT_TRUE(paused_reads > 0 || testing::Test::HasFailure());
  EXPECT_TRUE(pinned_reads > 0 || testing::Test::HasFailure());
  RecordProperty("paused_reads", paused_reads);
  RecordProperty("pinned_reads", pinned_reads);
}

TEST(RandomHistoryTest, NoCrashLosesAnAckedCut) {
  for (int i = 0; i < Repeat(40) && !testing::Test::HasFailure(); ++i) {
    uint64_t seed = FirstSeed() + 1000 + i;
    FaultEnv env;
    RandomHistory history(env, seed, RandomHistory::Faults::kNone);
    history.Run(40);
    std::mt19937_64 random(seed);
    for (int crash = 0; crash < 40 && !testing::Test::HasFailure(); ++crash) {
      size_t changes = random() % (env.change_count() + 1);
      uint64_t crash_seed = random();
      SCOPED_TRACE(testing::Message() << "seed " << seed - 1000 << ", crash after " << changes
                                      << " changes, crash seed " << crash_seed);
      CutNumber needed = 0;
      for (const auto& acked : history.acked()) {
        if (acked.change_count <= changes) needed = std::max(needed, acked.cut);
      }
      auto crashed = env.Crash(changes, crash_seed);
      RandomHistory::Check(*crashed, history.golden(), needed, KeptBy(history, changes));
    }
  }
}

TEST(RandomHistoryTest, NoFaultLosesAnAckedCut) {
  const absl::Status faults[] = {absl::InternalError("Input/output error"),
                                 absl::ResourceExhaustedError("No space left on device")};
  for (int i = 0; i < Repeat(150) && !testing::Test::HasFailure(); ++i) {
    uint64_t seed = FirstSeed() + 2000 + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed - 2000);
    std::mt19937_64 random(seed);
    FaultEnv env;
    env.FailCall(random() % 2500, faults[random() % 2]);
    RandomHistory history(env, seed, RandomHistory::Faults::kExpected);
    history.Run(40);
    CutNumber needed = 0;
    for (const auto& acked : history.acked()) needed = std::max(needed, acked.cut);
    env.FailCall(UINT64_MAX / 2, absl::OkStatus());
    // The process ends too: bytes that a failed sync lost must not be needed then.
    auto crashed = env.Crash(env.change_count(), random());
    RandomHistory::Check(*crashed, history.golden(), needed, KeptBy(history, SIZE_MAX),
                         history.unsure());
    auto now = env.CopyNow();
    RandomHistory::Check(*now, history.golden(), needed, KeptBy(history, SIZE_MAX),
                         history.unsure());
  }
}

}  // namespace
}  // namespace h5mirror::store
