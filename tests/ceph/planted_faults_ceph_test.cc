// The crash test of CephFS finds what it is for: each planted fault loses what was acked.
#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>

#include "ceph/mount.h"
#include "gtest/gtest.h"
#include "tests/ceph/ceph_life.h"
#include "tests/crash/settings.h"

namespace h5mirror::ceph {
namespace {

// Of one scenario, each up to another sync.
constexpr uint64_t kLivesMax = 40;

std::atomic<bool> guard_is_left_out{false};

}  // namespace

// By their names for the linker: the guard that each sync asks, and what is called instead.
absl::Status RealGuard(CephMount* mount, Inode* inode, std::string_view path) __asm__(
    "__real__ZN8h5mirror4ceph9CephMount5GuardEP5InodeSt17basic_string_viewIcSt11char_traitsIcEE");
absl::Status FaultyGuard(CephMount* mount, Inode* inode, std::string_view path) __asm__(
    "__wrap__ZN8h5mirror4ceph9CephMount5GuardEP5InodeSt17basic_string_viewIcSt11char_traitsIcEE");
absl::Status FaultyGuard(CephMount* mount, Inode* inode, std::string_view path) {
  return guard_is_left_out ? absl::OkStatus() : RealGuard(mount, inode, path);
}

namespace {

bool IsIn(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

// Lives of "overwrites" until one loses something; what that is. "": none does.
std::string FindLoss(const FailingEnv::Lie& lie) {
  const store::Scenario& scenario = *store::FindScenario("overwrites");
  const uint64_t seed = store::FirstSeed();
  const uint64_t syncs = MeasurePlay(scenario, seed, FailingEnv::Count::kSyncs);
  for (uint64_t i = 0; i < kLivesMax; ++i) {
    const uint64_t number = SpreadPlace(syncs, i * 17 % kLivesMax, kLivesMax, seed);
    const std::string found =
        PlayEvicted(scenario, seed, {FailingEnv::Count::kSyncs, number}, lie).wrong;
    if (found.empty()) continue;
    std::printf("found in life %d: %s\n", static_cast<int>(i + 1), found.c_str());
    return found;
  }
  return "";
}

TEST(CephPlantedFaultsTest, ASyncOfTheStageThatDoesNothing) {
  EXPECT_NE(FindLoss([](std::string_view name) { return IsIn(name, "stage-"); }), "");
}

TEST(CephPlantedFaultsTest, ASyncOfTheIndexThatDoesNothing) {
  EXPECT_NE(FindLoss([](std::string_view name) { return IsIn(name, "index"); }), "");
}

// fsync says OK after the end of the session (docs/design/048-ceph.md).
TEST(CephPlantedFaultsTest, ASyncWithoutItsGuard) {
  guard_is_left_out = true;
  EXPECT_NE(FindLoss(nullptr), "");
  guard_is_left_out = false;
}

}  // namespace
}  // namespace h5mirror::ceph
