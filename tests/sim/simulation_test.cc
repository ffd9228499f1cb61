// Lives of server, network and clients, each chosen by a seed: no promise is broken in any.
// H5M_SIM_SEEDS: how many, 10,000 unless told otherwise; H5M_SEED: the first.
#include "tests/sim/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace h5mirror::sim {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(SimulationTest, EachSeedKeepsAllPromises) {
  uint64_t seed = 0;
  const Outcome outcome =
      SimulateMany(FromEnvironment("H5M_SEED", 1), FromEnvironment("H5M_SIM_SEEDS", 10000), &seed);
  EXPECT_EQ(outcome.violation, "") << Describe(seed, outcome, 200);
}

TEST(SimulationTest, ASeedIsReplayedStepByStep) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Outcome one = Simulate(seed, Tracing::kOn);
    const Outcome other = Simulate(seed);
    EXPECT_EQ(one.fingerprint, other.fingerprint) << "seed " << seed;
    EXPECT_EQ(one.step, other.step) << "seed " << seed;
    EXPECT_FALSE(one.trace.empty());
  }
}

}  // namespace
}  // namespace h5mirror::sim
