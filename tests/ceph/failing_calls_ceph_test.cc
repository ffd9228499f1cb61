// Calls of the scenarios of tests/crash fail on CephFS: once, until the disk works again, or for
// good, as for a client on the blocklist. An error says so, no acked byte is lost, and a second
// client can use the files.
//
// H5M_CEPH_LIVES: lives of each scenario; H5M_SEED: which calls fail, and what is written.
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

constexpr uint64_t kLives = 4;
// Each life mostly waits for the cluster, or for a background that has met its fault.
constexpr int kAtOnce = 8;
// A full disk is retried after 5 s. A disk that stays full need not wait for that.
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kPatienceWhileFull = absl::Seconds(2);

enum class Fault : uint8_t {
  kOneError,  // EIO: a write is short, a sync does nothing
  kOneFull,   // ENOSPC
  kDiskGone,  // EIO of all calls
  kDiskFull,  // ENOSPC of all writes
  kRefused,   // ESHUTDOWN, which is for good
};
constexpr Fault kFaults[] = {Fault::kOneError, Fault::kOneFull, Fault::kDiskGone, Fault::kDiskFull,
                             Fault::kRefused};

struct Failure {
  const store::Scenario* scenario = nullptr;
  Fault fault = Fault::kOneError;
  uint64_t call = 0;
  uint64_t of = 0;
  // False: the client lives on: it closes its store, and writes back in its own time.
  bool ends_session = false;
};

void Plant(CephLife& life, const Failure& failure) {
  const absl::Status error = absl::InternalError(store::kIoError);
  const absl::Status full = absl::ResourceExhaustedError(store::kNoSpace);
  switch (failure.fault) {
    case Fault::kOneError:
      return life.env().FailCalls(failure.call, 1, error);
    case Fault::kOneFull:
      return life.env().FailCalls(failure.call, 1, full);
    case Fault::kDiskGone:
      return life.env().FailCalls(failure.call, UINT64_MAX, error);
    case Fault::kDiskFull:
      return life.env().FailCalls(failure.call, UINT64_MAX, full, FailingEnv::Calls::kWrites);
    case Fault::kRefused:
      return life.env().Before(FailingEnv::Count::kCalls, failure.call,
                               [&life] { life.RefuseCalls(); });
  }
}

// The violation found afterwards; "": none.
std::string Play(const Failure& failure, uint64_t seed) {
  auto begun = CephLife::Begin();
  if (!begun.ok()) return begun.status().ToString();
  CephLife& life = **begun;
  Plant(life, failure);
  const bool is_refused = failure.fault == Fault::kRefused;
  const bool stays_full = failure.fault == Fault::kDiskFull;
  store::PlayEnd end =
      store::PlayOnFailing(life.env(), *failure.scenario,
                           {.seed = seed,
                            .choice = failure.call,
                            .patience = stays_full ? kPatienceWhileFull : kPatience,
                            .lift = [&life] { life.env().FailCalls(0, 0, absl::OkStatus()); },
                            .reason = is_refused ? "fenced off from CephFS" : store::kIoError,
                            .is_for_good = is_refused});
  if (!end.wrong.empty()) return end.wrong;
  if (is_refused || failure.ends_session) life.EndSession(seed + failure.call);
  const absl::Status kept =
      life.CheckBySuccessor(failure.scenario->options, failure.call + 1, &end.promised);
  return kept.ok() ? "" : StrCat(kept.ToString(), "\nto a second client");
}

TEST(CephFailingCallsTest, LeaveTheHistoryWholeAndTheFilesUsable) {
  const uint64_t seed = store::FirstSeed();
  const uint64_t lives = store::FromEnvironment("H5M_CEPH_LIVES", kLives);
  std::vector<Failure> all;
  for (const store::Scenario& scenario : store::AllScenarios()) {
    const uint64_t calls = MeasurePlay(scenario, seed, FailingEnv::Count::kCalls);
    ASSERT_GT(calls, 0u) << scenario.name;
    for (uint64_t i = 0; i < lives; ++i) {
      const uint64_t turn = seed + all.size();
      all.push_back({&scenario, kFaults[turn % std::size(kFaults)],
                     SpreadPlace(calls, i, lives, turn), calls,
                     turn / std::size(kFaults) % 2 == 0});
    }
  }
  const std::string wrong = store::PlayAll(all.size(), kAtOnce, [&](uint64_t i) -> std::string {
    const Failure& failure = all[i];
    const std::string found = Play(failure, seed);
    if (found.empty()) return "";
    return StrCat(found, "\nscenario ", failure.scenario->name, ", H5M_SEED ", seed, ", fault ",
                  static_cast<int>(failure.fault), " at call ", failure.call, " of about ",
                  failure.of, failure.ends_session ? ", its session ended" : "");
  });
  EXPECT_EQ(wrong, "");
  std::printf("%zu calls of %zu scenarios failed\n", all.size(), store::AllScenarios().size());
}

}  // namespace
}  // namespace h5mirror::ceph
