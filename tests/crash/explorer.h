// Plays a scenario, goes through the states that a power loss may leave of it, and checks each.
#ifndef H5MIRROR_TESTS_CRASH_EXPLORER_H_
#define H5MIRROR_TESTS_CRASH_EXPLORER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "base/testing/fault_env.h"
#include "tests/crash/player.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::store {

// Makes a lie for each disk: a lie may remember what it saw.
using LieMaker = std::function<FaultEnv::Lie()>;

// The faults of the disk below the store; by default none.
struct DiskFault {
  LieMaker lie_maker;
  bool lies_about_names = false;  // FaultEnv::SetLiesAboutNames()

  bool is_none() const { return lie_maker == nullptr && !lies_about_names; }
  void PlantIn(FaultEnv& env) const {
    if (lie_maker != nullptr) env.SetLie(lie_maker());
    env.SetLiesAboutNames(lies_about_names);
  }
};

// One scenario, played. Thread-compatible.
class Recording {
 public:
  Recording(const Scenario& scenario, uint64_t seed, DiskFault fault = {});

  // Not OK: why the scenario could not be played to its end, or what a crash of only the program
  // lost.
  absl::Status CheckEnd();
  // The violation that a power loss at `point` leads to. kTwo: there is a second one while the
  // store recovers from the first.
  enum class Losses : uint8_t { kOne, kTwo };
  absl::Status CheckCrash(FaultEnv& crashed, const CrashPoint& point, Losses losses) const;

  const FaultEnv& env() const { return *env_; }
  std::unique_ptr<FaultEnv> Crash(const CrashPoint& point) const;
  const Promises& promises() const { return promises_; }
  const Scenario& scenario() const { return scenario_; }
  // For people: where in the scenario `point` is, and how to replay it.
  std::string Describe(const CrashPoint& point) const;

 private:
  const Scenario& scenario_;
  const uint64_t seed_;
  const DiskFault fault_;
  std::unique_ptr<FaultEnv> env_;
  Promises promises_;
  std::vector<Player::Step> steps_;
  absl::Status played_;
};

struct Exploration {
  // How many different trees were checked, plus how often a tree was checked again because more had
  // been promised by then.
  size_t state_count = 0;
  size_t check_count = 0;
  // The first violation, with all that is needed to see it again; empty: none.
  std::string violation;
};

// Checks `state_count` states of recordings of `scenario`, the first made with `seed`, spread over
// the record; fewer if there are no more.
Exploration Explore(const Scenario& scenario, uint64_t seed, size_t state_count,
                    const DiskFault& fault = {});

// The same for disks that rot: flips one bit after the other, each on a copy of its own, in the
// heads, pre-images and sums that the scenario leaves, and in stages as a power loss leaves them.
// Bytes may get lost, but wrong bytes must never be returned. (Direct bytes that are not applied
// yet have no sum; the index has none at all.)
Exploration ExploreRot(const Scenario& scenario, uint64_t seed, size_t flip_count,
                       const DiskFault& fault = {});

// Of H5M_CRASH_REPLAY, as Describe() prints it: scenario, seed and point.
struct Replay {
  const Scenario* scenario = nullptr;
  uint64_t seed = 0;
  CrashPoint point;
};
std::optional<Replay> ParseReplay(const std::string& text);

// Writes all files of `env` below `directory`.
absl::Status SaveTree(FaultEnv& env, const std::string& directory);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_EXPLORER_H_
