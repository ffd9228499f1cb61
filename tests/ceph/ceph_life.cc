#include "tests/ceph/ceph_life.h"

#include <errno.h>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "tests/ceph/ceph_place.h"
#include "tests/crash/check_store.h"
#include "tests/crash/failing_play.h"

namespace h5mirror::ceph {
namespace {

// If a step waits longer for the background, its play ends. Most of the wait is for OSD and MDS.
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kFenced[] = "fenced off from CephFS";
// In one of so many lives a writer goes on before anything is applied.
constexpr uint64_t kGoingOnEvery = 3;

// The client that makes all checks, and the roots.
Env& Successor() {
  static Env* const env = [] {
    auto mounted = MountCluster([](const std::string& why) { ADD_FAILURE() << "fenced: " << why; });
    EXPECT_TRUE(mounted.ok()) << mounted.status();
    return mounted->release();
  }();
  return *env;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CephLife>> CephLife::Begin() {
  H5M_ASSIGN_OR_RETURN(std::string root, MakeTestRoot(Successor()));
  H5M_ASSIGN_OR_RETURN(auto mounted, MountCluster(nullptr));
  return std::unique_ptr<CephLife>(new CephLife(std::move(mounted), std::move(root)));
}

CephLife::~CephLife() {
  // An unmount would wait for a session that is gone.
  if (has_ended_) mount().fence().Trip("the test has ended the session").IgnoreError();
}

void CephLife::EndSession(uint64_t seed) {
  if (has_ended_.exchange(true)) return;
  env_.SyncSome(seed);
  auto other = CephMount::Open(ClusterUrl(), nullptr);
  ASSERT_TRUE(other.ok()) << other.status();
  ceph_mount_info* const by = (*other)->get();
  ASSERT_EQ(ceph_start_reclaim(by, mount().session().uuid.c_str(), CEPH_RECLAIM_RESET), 0);
  ceph_finish_reclaim(by);
  if (seed % 2 == 0) AwaitNews();
}

void CephLife::AwaitNews() {
  const absl::Time deadline = absl::Now() + kPatience;
  CephStat stx{};
  while (ceph_statx(mount().get(), "/no such file", &stx, CEPH_STATX_SIZE, 0) == -ENOENT) {
    ASSERT_LT(absl::Now(), deadline) << "the client does not hear that its session has ended";
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void CephLife::RefuseCalls() { mount().Check(-ESHUTDOWN, "write", "a file").IgnoreError(); }

absl::Status CephLife::CheckBySuccessor(const store::PlayOptions& options, uint64_t choice,
                                        store::Promises* promises) {
  FailingEnv env(Successor(), root_);
  if (choice % kGoingOnEvery == 0) {
    H5M_RETURN_IF_ERROR(store::CheckGoingOn(env, options, choice / kGoingOnEvery, promises));
  }
  return store::CheckDisk(env, options, choice, promises);
}

uint64_t MeasurePlay(const store::Scenario& scenario, uint64_t seed, FailingEnv::Count count) {
  FaultEnv memory;
  memory.SetSharesBlocks(false);
  memory.SetGrowsAhead(true);
  FailingEnv env(memory, "/");
  store::Player player(env, seed, scenario.options, store::Pace::kConcurrent);
  player.Open();
  scenario.play(player);
  player.Close();
  EXPECT_TRUE(player.status().ok()) << player.status();
  return env.count(count);
}

namespace {

std::string PlayLife(CephLife& life, const store::Scenario& scenario, uint64_t seed,
                     const Eviction& before, std::atomic<bool>& was_reached) {
  const uint64_t choice = seed + before.number;
  life.env().Before(before.count, before.number, [&life, &was_reached, choice] {
    was_reached = true;
    life.EndSession(choice);
  });
  store::Player player(life.env(), seed, scenario.options, store::Pace::kConcurrent);
  player.SetPatience(kPatience);
  player.Open();
  scenario.play(player);
  const absl::Status told = player.status();
  if (!told.ok() && !life.has_ended()) return StrCat("failed by itself: ", told.ToString());
  if (!store::TellsWhy(told, kFenced)) return StrCat("told: ", told.ToString());
  life.EndSession(choice);
  player.Abandon();
  player.Leave();
  store::Promises promised = player.promises().At(SIZE_MAX);
  const absl::Status kept = life.CheckBySuccessor(scenario.options, choice, &promised);
  if (kept.ok()) return "";
  const std::string step = player.steps().empty() ? "(none)" : player.steps().back().text;
  return StrCat(kept.ToString(), "\nafter the session had ended, in step \"", step,
                "\": ", told.ToString());
}

}  // namespace

EvictedLife PlayEvicted(const store::Scenario& scenario, uint64_t seed, const Eviction& before,
                        const FailingEnv::Lie& lie) {
  auto begun = CephLife::Begin();
  if (!begun.ok()) return {.wrong = begun.status().ToString()};
  CephLife& life = **begun;
  life.env().SetLie(lie);
  std::atomic<bool> was_reached{false};
  std::string wrong = PlayLife(life, scenario, seed, before, was_reached);
  return {std::move(wrong), was_reached, life.env().grow_count()};
}

}  // namespace h5mirror::ceph
