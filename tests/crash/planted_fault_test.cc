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
constexpr size_t kShare = 500;

class PlantedFaultTest : public testing::TestWithParam<std::string> {};

TEST_P(PlantedFaultTest, IsFoundWithinTheDefaultNumberOfStates) {
  const PlantedFault* fault = nullptr;
  for (const PlantedFault& one : AllPlantedFaults()) {
    if (GetParam() == one.name) fault = &one;
  }
  ASSERT_NE(fault, nullptr);
  size_t checked = 0;
  for (const char* scenario : {fault->scenario, "any_life"}) {
    Exploration found = Explore(*FindScenario(scenario), FirstSeed(), kShare,
                                {fault->lie_maker, fault->lies_about_names});
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

struct PlantedStoreFault {
  const char* name;
  StoreFault fault;
  const char* scenario;
};
constexpr PlantedStoreFault kStoreFaults[] = {
    {"newer_pre_image_wins", StoreFault::kNewerPreImageWins, "overwrites"},
    {"direct_sums_kept", StoreFault::kDirectSumsKept, "ticks_and_syncs"},
    {"freed_before_transaction", StoreFault::kFreedBeforeTransaction, "prune_singles"},
    {"moved_before_dropped", StoreFault::kMovedBeforeDropped, "prune_runs"},
    {"newest_first", StoreFault::kNewestFirst, "prune_order"},
    {"longest_first", StoreFault::kLongestFirst, "prune_order"},
    {"size_of_kept_only", StoreFault::kSizeOfKeptOnly, "prune_sizes"},
    {"oldest_kept_gets", StoreFault::kOldestKeptGets, "prune_singles"},
    {"copies_not_synced", StoreFault::kCopiesNotSynced, "prune_singles"},
    {"generations_kept", StoreFault::kGenerationsKept, "prune_generations"},
    {"readers_not_told", StoreFault::kReadersNotTold, "prune_beside_all"},
    {"tags_kept", StoreFault::kTagsKept, "prune_tags"},
};

class StoreFaultTest : public testing::TestWithParam<PlantedStoreFault> {};

// The states of one seed are a sample: what it misses, the next ones must find.
TEST_P(StoreFaultTest, IsFoundByTheDefaultNumberOfStatesOfAFewSeeds) {
  Planted fault(GetParam().fault);
  Exploration found;
  for (uint64_t seed = FirstSeed(); found.violation.empty() && seed < FirstSeed() + 4; ++seed) {
    found = Explore(*FindScenario(GetParam().scenario), seed, kShare);
  }
  EXPECT_NE(found.violation, "") << "nothing was found in " << found.state_count << " states";
  std::printf("found in state %zu: %s\n", found.state_count, found.violation.c_str());
}

INSTANTIATE_TEST_SUITE_P(, StoreFaultTest, testing::ValuesIn(kStoreFaults),
                         [](const auto& info) { return info.param.name; });

TEST(StoreFaultsTest, ChecksumsThatAreNotComparedAreFound) {
  Planted fault(StoreFault::kChecksumsNotCompared);
  EXPECT_NE(ExploreRot(*FindScenario("overwrites"), FirstSeed(), kShare / 20).violation, "");
}

TEST(StoreFaultsTest, NothingIsFoundWhereNothingIsPlanted) {
  for (const char* scenario : {"overwrites", "prune_runs"}) {
    EXPECT_EQ(Explore(*FindScenario(scenario), FirstSeed(), 100).violation, "");
  }
  EXPECT_EQ(ExploreRot(*FindScenario("overwrites"), FirstSeed(), kShare / 20).violation, "");
}

INSTANTIATE_TEST_SUITE_P(, PlantedFaultTest, testing::ValuesIn(PlantedFaultNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace h5mirror::store
