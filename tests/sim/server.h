// The simulated server: the daemon's sessions, leases and store, on a disk that forgets.
#ifndef H5MIRROR_TESTS_SIM_SERVER_H_
#define H5MIRROR_TESTS_SIM_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/testing/fault_env.h"
#include "onion_store/store.h"
#include "server/metrics/metrics.h"
#include "server/mirror/session.h"
#include "server/mirror/session_memory.h"
#include "server/state/commit_board.h"
#include "server/state/lease_table.h"
#include "server/state/mirror_states.h"
#include "tests/sim/golden.h"
#include "tests/sim/world.h"

namespace h5mirror::sim {

class ServerCall;

// The server machine's clocks; waits are the simulation's.
class SimClock final : public Clock {
 public:
  explicit SimClock(World& world) : world_(world) {}
  absl::Time Now() override { return world_.Now() + offset_; }
  absl::Duration Monotonic() override { return world_.Now() - absl::UnixEpoch(); }
  void Await(absl::Mutex& mutex, const absl::Condition& condition,
             absl::Duration timeout) override ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Sets the time of day.
  void Step(absl::Duration by) { offset_ += by; }

 private:
  World& world_;
  absl::Duration offset_ = absl::ZeroDuration();
};

class Server {
 public:
  Server(World& world, Golden& golden, absl::Duration lease_ttl);
  ~Server();

  bool up() const { return store_ != nullptr; }
  // Takes new calls.
  bool accepts() const { return up() && !stopping_; }
  // Another number after each start and end.
  uint64_t life() const { return life_; }
  // The environment of new sessions; only while the server is up.
  const server::SessionEnvironment& environment() const { return *environment_; }
  Golden& golden() { return golden_; }
  SimClock& clock() { return clock_; }
  World& world() { return world_; }

  void Start();
  // The machine loses its power, at some moment since a client was last told anything: unsynced
  // bytes may be lost. All calls vanish.
  void LosePower();
  // The process dies, and the machine lives on.
  void Die();
  // Ends the sessions politely, and closes the store. In a fiber of `this`.
  void StopPolitely();

  void Add(ServerCall* call) { calls_.push_back(call); }
  void Remove(ServerCall* call) { std::erase(calls_, call); }

  // The disk is slow until then: nothing becomes durable.
  void HoldDisk(absl::Time until) { disk_held_until_ = until; }
  // Has `then` run when the next cut is said to be durable.
  void WhenDurable(std::function<void()> then) { when_durable_ = std::move(then); }
  // A client is told something: the changes on the disk by now count as made.
  void NoteTold() { told_at_change_ = disk_->change_count(); }
  void NoteDurable() {
    if (when_durable_) world_.After(absl::ZeroDuration(), std::exchange(when_durable_, nullptr));
  }
  // Everything is durable and applied; looks at heads and versions.
  void CheckAtRest();
  store::Store& store() { return *store_; }
  server::MirrorStates& mirrors() { return *mirrors_; }

 private:
  void Forget(std::unique_ptr<FaultEnv> disk);
  void Timer(uint64_t life);
  void Background(uint64_t life);
  bool HasCallOf(const std::string& name) const;

  World& world_;
  Golden& golden_;
  SimClock clock_;
  const absl::Duration lease_ttl_;
  uint64_t life_ = 0;
  bool stopping_ = false;
  std::function<void()> when_durable_;
  absl::Time disk_held_until_ = absl::InfinitePast();
  std::unique_ptr<FaultEnv> disk_;
  size_t told_at_change_ = 0;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::LeaseTable> leases_;
  std::unique_ptr<server::SessionMemory> memory_;
  std::unique_ptr<server::CommitBoard> commits_;
  std::unique_ptr<server::MirrorStates> mirrors_;
  std::unique_ptr<server::SessionEnvironment> environment_;
  std::vector<ServerCall*> calls_;  // in the order of arrival, which addresses do not have
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_SERVER_H_
