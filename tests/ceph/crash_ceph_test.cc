// The scenarios of tests/crash on CephFS: a client's session is ended before one of its changes; in
// every second life that is a sync. The client loses bytes that it had not written back. Its
// successor finds all that was acked.
//
// H5M_CEPH_LIVES: lives of each scenario; H5M_SEED: where they end, and what they write.
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "base/strings.h"
#include "gtest/gtest.h"
#include "tests/ceph/ceph_life.h"
#include "tests/crash/failing_play.h"
#include "tests/crash/settings.h"

namespace h5mirror::ceph {
namespace {

using Count = FailingEnv::Count;

constexpr uint64_t kLives = 4;
// Each life mostly waits for the cluster.
constexpr int kAtOnce = 8;

struct Life {
  const store::Scenario* scenario = nullptr;
  Eviction before;
  uint64_t of = 0;
};

std::vector<Life> AllLives(uint64_t seed, uint64_t lives) {
  std::vector<Life> all;
  for (const store::Scenario& scenario : store::AllScenarios()) {
    for (uint64_t i = 0; i < lives; ++i) {
      const Count count = i % 2 == 0 ? Count::kChanges : Count::kSyncs;
      const uint64_t of = MeasurePlay(scenario, seed, count);
      all.push_back({&scenario, {count, SpreadPlace(of, i, lives, seed + all.size())}, of});
    }
  }
  return all;
}

TEST(CephCrashTest, ASuccessorFindsAllThatWasAckedWhereverTheSessionEnded) {
  const uint64_t seed = store::FirstSeed();
  const std::vector<Life> all = AllLives(seed, store::FromEnvironment("H5M_CEPH_LIVES", kLives));
  std::atomic<uint64_t> reached{0}, grown{0};
  const std::string wrong = store::PlayAll(all.size(), kAtOnce, [&](uint64_t i) -> std::string {
    const Life& life = all[i];
    const EvictedLife end = PlayEvicted(*life.scenario, seed, life.before);
    reached += end.was_reached ? 1 : 0;
    grown += end.grow_count;
    if (end.wrong.empty()) return "";
    return StrCat(end.wrong, "\nscenario ", life.scenario->name, ", H5M_SEED ", seed, ", before ",
                  life.before.count == Count::kSyncs ? "sync " : "change ", life.before.number,
                  " of about ", life.of);
  });
  EXPECT_EQ(wrong, "");
  std::printf("%zu lives of %zu scenarios ended, %zu of them before their change\n", all.size(),
              store::AllScenarios().size(), static_cast<size_t>(reached));
  EXPECT_GE(10 * reached, 8 * all.size()) << "too many ended with their play";
  EXPECT_GT(grown, 0u) << "no file received bytes in advance";
}

}  // namespace
}  // namespace h5mirror::ceph
