// The crash tests find what they are for: each planted fault makes them fail.
#include <cstdio>

#include "gtest/gtest.h"
#include "tests/crash/explorer.h"
#include "tests/crash/planted_faults.h"
#include "tests/crash/settings.h"
#include "tests/crash/store_faults.h"

namespace h5mirror::store {
namespace {

// About what a scenario gets of the default number of states.
constexpr size_t kShare = 1000;

class PlantedFaultTest : public testing::TestWithParam<std::string> {};

TEST_P(PlantedFaultTest, IsFoundWithinTheDefaultNumberOfStates) {
  const PlantedFault* fault = nullptr;
  for (const PlantedFault& one : AllPlantedFaults()) {
    if (GetParam() == one.name) fault = &one;
  }
  ASSERT_NE(fault, nullptr);
  size_t checked = 0;
  for (const char* scenario : {fault->scenario, "any_life"}) {
    Exploration found = Explore(*FindScenario(scenario), FirstSeed(), kShare, fault->lie_maker);
    checked += found.state_count;
    if (found.violation.empty()) continue;
    std::printf("found in %s, in state %zu: %s\n", scenario, checked, found.violation.c_str());
    return;
  }
  ADD_FAILURE() << "nothing was found in " << checked << " states";
}

// The store's own faults, while the object lives.
class Planted {
 public:
  explicit Planted(StoreFault fault) { PlantStoreFault(fault); }
  ~Planted() { PlantStoreFault(StoreFault::kNone); }
};

TEST(StoreFaultTest, ANewerPreImageThatWinsIsFound) {
  Planted fault(StoreFault::kNewerPreImageWins);
  EXPECT_NE(Explore(*FindScenario("overwrites"), FirstSeed(), kShare).violation, "");
}

TEST(StoreFaultTest, ChecksumsThatAreNotComparedAreFound) {
  Planted fault(StoreFault::kChecksumsNotCompared);
  EXPECT_NE(ExploreRot(*FindScenario("overwrites"), FirstSeed(), kShare / 20).violation, "");
}

TEST(StoreFaultTest, NothingIsFoundWhereNothingIsPlanted) {
  EXPECT_EQ(Explore(*FindScenario("overwrites"), FirstSeed(), 100).violation, "");
  EXPECT_EQ(ExploreRot(*FindScenario("overwrites"), FirstSeed(), kShare / 20).violation, "");
}

INSTANTIATE_TEST_SUITE_P(, PlantedFaultTest, testing::ValuesIn(PlantedFaultNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace h5mirror::store
