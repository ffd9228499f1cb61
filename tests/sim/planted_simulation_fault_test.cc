// The simulation finds faults: each planted fault breaks a promise within the seeds of the default
// run.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>

#include "tests/sim/planted_faults.h"
#include "tests/sim/simulation.h"

namespace h5mirror::sim {
namespace {

constexpr uint64_t kSeeds = 10000;

struct Planted {
  const char* name;
  Fault fault;
};
// Without it a test's name in ctest has the parameter's bytes, which differ from run to run.
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

constexpr Planted kFaults[] = {
    {"fence_dropped", Fault::kFenceDropped},
    {"token_reused", Fault::kTokenReused},
    {"cut_numbers_again", Fault::kCutNumbersAgain},
    {"stage_not_synced", Fault::kStageNotSynced},
    {"map_of_any_state", Fault::kMapOfAnyState},
    {"ack_before_durable", Fault::kAckBeforeDurable},
    {"index_not_synced", Fault::kIndexNotSynced},
    {"head_not_synced", Fault::kHeadNotSynced},
    {"generation_continued", Fault::kGenerationContinued},
    {"resume_past_a_restart", Fault::kResumePastARestart},
    {"continue_unchecked", Fault::kContinueUnchecked},
    {"late_streams_taken", Fault::kLateStreamsTaken},
    {"dirty_bits_cleared_early", Fault::kDirtyBitsClearedEarly},
    {"no_copy_out", Fault::kNoCopyOut},
    {"truncate_forgotten", Fault::kTruncateForgotten},
    {"map_without_extents", Fault::kMapWithoutExtents},
    {"record_says_clean", Fault::kRecordSaysClean},
    {"unclean_file_trusted", Fault::kUncleanFileTrusted},
};

class PlantedSimulationFaultTest : public testing::TestWithParam<Planted> {
 protected:
  ~PlantedSimulationFaultTest() override { Plant(Fault::kNone); }
};

TEST_P(PlantedSimulationFaultTest, IsFoundWithinTheDefaultNumberOfSeeds) {
  Plant(GetParam().fault);
  uint64_t seed = 0;
  const Outcome outcome = SimulateMany(1, kSeeds, &seed);
  EXPECT_NE(outcome.violation, "") << "nothing was found in " << kSeeds << " seeds";
  std::printf("found by seed %llu: %s\n", static_cast<unsigned long long>(seed),
              outcome.violation.c_str());
}

INSTANTIATE_TEST_SUITE_P(, PlantedSimulationFaultTest, testing::ValuesIn(kFaults),
                         [](const auto& info) { return info.param.name; });

// A stream that has lost its lease is ended, and its token is fenced: either is enough.
TEST(PlantedSimulationTest, TokensAloneKeepALateStreamOut) {
  Plant(Fault::kRevocationLost);
  uint64_t seed = 0;
  const Outcome outcome = SimulateMany(1, 500, &seed);
  Plant(Fault::kNone);
  EXPECT_EQ(outcome.violation, "") << Describe(seed, outcome, 100);
}

// The wrappers of the product's functions change nothing by themselves.
TEST(PlantedSimulationTest, NothingIsFoundWhereNothingIsPlanted) {
  uint64_t seed = 0;
  const Outcome outcome = SimulateMany(1, 200, &seed);
  EXPECT_EQ(outcome.violation, "") << Describe(seed, outcome, 100);
}

}  // namespace
}  // namespace h5mirror::sim
