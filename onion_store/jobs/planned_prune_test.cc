#include "onion_store/jobs/planned_prune.h"

#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;
constexpr uint64_t kRecord = 600;

// Versions 1 to 4 of generation 1, each of four pages, and version 5 of generation 2.
std::vector<VersionSize> FiveVersions() {
  std::vector<VersionSize> versions;
  for (VersionNumber number = 1; number <= 5; ++number) {
    versions.push_back({number, number < 5 ? 1 : 2, 4 * kPage});
  }
  return versions;
}

class PlannedPruneTest : public testing::Test {
 protected:
  // Counts the row of `version`, with one page, in segment 1. Its version exists.
  void Take(PlannedPrune& plan, VersionNumber version, uint64_t page) {
    PageRun run;
    run.page = page;
    run.version = version;
    run.segment = 1;
    plan.Take(run, static_cast<size_t>(version - 1), true, kRecord);
  }
  const std::vector<VersionSize> versions_ = FiveVersions();
};

TEST_F(PlannedPruneTest, WithoutAPruneEveryRecordStays) {
  PlannedPrune plan(versions_, {}, kPage);
  plan.BeginBlock(0);
  for (VersionNumber version = 1; version <= 3; ++version) Take(plan, version, 0);
  EXPECT_EQ(plan.live_bytes(1), 3 * kRecord);
  EXPECT_EQ(plan.live_bytes(2), 0);
}

TEST_F(PlannedPruneTest, ARowOfADroppedVersionGoesToTheOlderOneThatHasNone) {
  PlannedPrune plan(versions_, {2, 3}, kPage);
  plan.BeginBlock(0);
  Take(plan, 2, 0);
  Take(plan, 3, 0);
  EXPECT_EQ(plan.live_bytes(1), kRecord)
      << "version 1 takes that of 2, and has no use for that of 3";
}

TEST_F(PlannedPruneTest, ARowWithoutAnOlderVersionIsDeleted) {
  PlannedPrune plan(versions_, {1, 2}, kPage);
  plan.BeginBlock(0);
  Take(plan, 1, 0);
  Take(plan, 2, 1);
  EXPECT_EQ(plan.live_bytes(1), 0);
}

TEST_F(PlannedPruneTest, APageBeyondAllOlderVersionsIsDeleted) {
  std::vector<VersionSize> grows = versions_;
  grows[0].size_bytes = kPage;
  PlannedPrune plan(grows, {2}, kPage);
  plan.BeginBlock(0);
  Take(plan, 2, 0);
  Take(plan, 2, 3);
  EXPECT_EQ(plan.live_bytes(1), kRecord);
}

TEST_F(PlannedPruneTest, AGenerationGoesWithItsLastVersion) {
  PlannedPrune some(versions_, {1, 2}, kPage), all(versions_, {1, 2, 3, 4}, kPage);
  EXPECT_TRUE(some.RetainsGeneration(1));
  EXPECT_FALSE(all.RetainsGeneration(1));
  EXPECT_TRUE(all.RetainsGeneration(2));
}

}  // namespace
}  // namespace h5mirror::store
