// Lives of clusters, each chosen by a seed: no promise is broken in any. 300 lives; 10,000 with
// H5MIRROR_TEST_ALL. H5M_CLUSTER_SIM_SEEDS: another number; H5M_SEED: the first.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/cluster_sim/simulation.h"

namespace h5mirror::cluster_sim {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t SeedCount() {
  const char* const all = std::getenv("H5MIRROR_TEST_ALL");
  const bool is_long =
      all != nullptr && std::string_view(all) != "" && std::string_view(all) != "0";
  return FromEnvironment("H5M_CLUSTER_SIM_SEEDS", is_long ? 10000 : 300);
}

TEST(ClusterSimulationTest, EachSeedKeepsAllPromises) {
  uint64_t seed = 0;
  const uint64_t count = SeedCount();
  const Outcome outcome = SimulateMany(FromEnvironment("H5M_SEED", 1), count, &seed);
  EXPECT_EQ(outcome.violation, "") << Describe(seed, outcome, 200);
  // Else the run has tested nothing.
  EXPECT_GE(outcome.takeovers, count);
}

TEST(ClusterSimulationTest, ASeedIsReplayedStepByStep) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcome one = Simulate(seed, Tracing::kOn);
    const Outcome other = Simulate(seed);
    EXPECT_EQ(one.fingerprint, other.fingerprint) << "seed " << seed;
    EXPECT_EQ(one.step, other.step) << "seed " << seed;
    EXPECT_FALSE(one.trace.empty());
  }
}

}  // namespace
}  // namespace h5mirror::cluster_sim
