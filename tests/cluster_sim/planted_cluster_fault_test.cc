// The simulation finds faults: each planted fault breaks a promise within the seeds of the default
// run.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>

#include "tests/cluster_sim/faults.h"
#include "tests/cluster_sim/simulation.h"

namespace h5mirror::cluster_sim {
namespace {

constexpr uint64_t kSeeds = 300;

struct Planted {
  const char* name;
  Fault fault;
};
// Without it a test's name in ctest has the parameter's bytes, which differ from run to run.
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

constexpr Planted kFaults[] = {
    {"epoch_not_raised", Fault::kEpochNotRaised},
    {"stale_owner_answers", Fault::kStaleOwnerAnswers},
    {"redirect_loop", Fault::kRedirectLoop},
    {"no_eviction", Fault::kNoEviction},
    {"late_eviction", Fault::kLateEviction},
    {"old_map_at_open", Fault::kOldMapAtOpen},
    {"short_blocklist", Fault::kShortBlocklist},
    {"no_size_guard", Fault::kNoSizeGuard},
};

class PlantedClusterFaultTest : public testing::TestWithParam<Planted> {
 protected:
  ~PlantedClusterFaultTest() override { Plant(Fault::kNone); }
};

TEST_P(PlantedClusterFaultTest, IsFoundWithinTheDefaultNumberOfSeeds) {
  Plant(GetParam().fault);
  uint64_t seed = 0;
  const Outcome outcome = SimulateMany(1, kSeeds, &seed);
  EXPECT_NE(outcome.violation, "") << "nothing was found in " << kSeeds << " seeds";
  std::printf("found by seed %llu: %s\n", static_cast<unsigned long long>(seed),
              outcome.violation.c_str());
}

INSTANTIATE_TEST_SUITE_P(, PlantedClusterFaultTest, testing::ValuesIn(kFaults),
                         [](const auto& info) { return info.param.name; });

// The wrappers of the product's functions change nothing by themselves.
TEST(PlantedClusterTest, NothingIsFoundWhereNothingIsPlanted) {
  uint64_t seed = 0;
  const Outcome outcome = SimulateMany(1, 50, &seed);
  EXPECT_EQ(outcome.violation, "") << Describe(seed, outcome, 200);
}

}  // namespace
}  // namespace h5mirror::cluster_sim
