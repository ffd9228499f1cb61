#include "tests/cluster_sim/simulation.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/strings.h"
#include "cluster/claims.h"
#include "cluster/wishes.h"
#include "tests/cluster_sim/client.h"
#include "tests/cluster_sim/life.h"
#include "tests/cluster_sim/server.h"
#include "tests/sim/world.h"

namespace h5mirror::cluster_sim {
namespace {

constexpr absl::Duration kChaosTime = absl::Seconds(60);
// Far longer than a takeover, or two in a row.
constexpr absl::Duration kCalmTime = absl::Minutes(3);

class Simulation {
 public:
  explicit Simulation(uint64_t seed);
  ~Simulation();
  sim::World& world() { return world_; }
  uint64_t Takeovers();
  void Run();

 private:
  void StartClients();
  void Disturb();
  void DisturbServer(Server& server);
  void PauseFor(Server& server, absl::Duration time);
  void CutOffFor(Server& server, absl::Duration time);
  void RegistryAway();
  // A random request of an operator to some server.
  void Operate();
  void Evict(const std::string& id);
  void Calm();
  // A cell that no owner serves; empty: none.
  std::string Unserved();
  void CheckDisk();

  sim::World world_;
  Golden golden_{world_};
  Disk disk_{world_, golden_};
  cluster::MemoryRegistry registry_;
  Site site_{world_, golden_, disk_, registry_, {}, false};
  std::vector<std::string> cells_;
  Servers servers_;
  std::vector<std::unique_ptr<Client>> clients_;
  int writers_ = 0;  // writers that have not ended
  bool stops_ = false;
  bool disturbs_ = true;
  absl::Duration calm_for_ = absl::Seconds(2);  // at most, between two disturbances
  const bool has_operator_;
};

Simulation::Simulation(uint64_t seed) : world_(seed), has_operator_(seed % 3 == 0) {
  if (world_.Chance(0.7)) {
    site_.weather = {0.02 * static_cast<double>(world_.Random(3)), 0.01, 0.2, 0.05};
  }
  calm_for_ = world_.Between(absl::Seconds(1), absl::Seconds(12));
  const uint64_t servers = 2 + world_.Random(3);
  for (uint64_t i = 0; i < servers; ++i) {
    // The rates differ by less than a quarter.
    const double rate = 0.9 + 0.2 * static_cast<double>(world_.Random(1001)) / 1000;
    servers_.push_back(
        std::make_unique<Server>(site_, std::string(1, static_cast<char>('a' + i)), rate));
  }
  const uint64_t cells = 1 + world_.Random(4);
  for (uint64_t i = 0; i < cells; ++i) {
    cells_.push_back(StrCat("lab-", i));
    if (!cluster::CreateCell(registry_, cells_.back()).ok()) world_.Fail("no cell can be made");
  }
}

Simulation::~Simulation() {
  for (const auto& client : clients_) world_.Kill(client.get());
  for (const auto& server : servers_) server->Kill();
  // Messages on their way keep lives alive, and these use the world when they end.
  world_.DropEvents();
}

uint64_t Simulation::Takeovers() {
  uint64_t takeovers = 0;
  const auto view = cluster::DecodeView(registry_.ReadAll().value());
  for (const auto& [cell, record] : view->cells) {
    takeovers += std::max<uint64_t>(record.epoch, 1) - 1;
  }
  return takeovers;
}

void Simulation::StartClients() {
  for (const std::string& cell : cells_) {
    for (int number = 0; number < kObjects; ++number) {
      Client& client = *clients_.emplace_back(std::make_unique<Client>(site_, servers_));
      ++writers_;
      world_.Spawn(&client, [this, &client, cell, number] {
        client.WriteUntil({cell, number}, stops_);
        --writers_;
      });
    }
  }
  for (int i = 0; i < 3; ++i) {
    Client& client = *clients_.emplace_back(std::make_unique<Client>(site_, servers_));
    world_.Spawn(&client, [this, &client] { client.ReadUntil(cells_, stops_); });
  }
}

void Simulation::PauseFor(Server& server, absl::Duration time) {
  world_.Trace(server.life().name(), ": stands still for ", absl::FormatDuration(time));
  server.life().Pause();
  world_.After(time, [&server, name = server.life().name()] {
    if (server.is_up() && server.life().name() == name) server.life().Continue();
  });
}

void Simulation::CutOffFor(Server& server, absl::Duration time) {
  world_.Trace(server.life().name(), ": cut off for ", absl::FormatDuration(time));
  server.life().CutOff(true);
  world_.After(time, [&server, name = server.life().name()] {
    if (server.is_up() && server.life().name() == name) server.life().CutOff(false);
  });
}

void Simulation::RegistryAway() {
  world_.Trace("the registry is away");
  site_.registry_is_away = true;
  world_.After(world_.Between(absl::Seconds(1), absl::Seconds(15)), [this] {
    world_.Trace("the registry is back");
    site_.registry_is_away = false;
  });
}

void Simulation::DisturbServer(Server& server) {
  switch (world_.Random(9)) {
    case 0:
    case 1:
      return server.KillAndRestart();
    case 2:
      return PauseFor(server, world_.Between(absl::Milliseconds(100), absl::Seconds(6)));
    case 3:
    case 4:  // Long enough for a successor, and for Ceph's own blocklist.
      return PauseFor(server, world_.Between(absl::Seconds(6), absl::Seconds(40)));
    case 5:
      return CutOffFor(server, world_.Between(absl::Seconds(1), absl::Seconds(30)));
    case 6:
      world_.Trace(server.life().name(), ": is told to drain");
      return server.life().node().Drain();
    case 7:
      return server.life().EndSession();
    default:
      world_.Trace(server.life().name(), ": no client reaches it");
      server.is_unreachable = true;
      world_.After(world_.Between(absl::Seconds(1), absl::Seconds(20)),
                   [&server] { server.is_unreachable = false; });
  }
}

void Simulation::Disturb() {
  if (!disturbs_) return;
  if (world_.Chance(0.1)) {
    RegistryAway();
  } else if (Server& server = *servers_[world_.Random(servers_.size())]; server.is_up()) {
    DisturbServer(server);
  }
  world_.After(world_.Between(absl::Milliseconds(200), calm_for_), [this] { Disturb(); });
}

// The server that is asked remembers the request. So it must be another server, and a running one.
void Simulation::Evict(const std::string& id) {
  const auto asked = std::find_if(servers_.begin(), servers_.end(), [&id](const auto& each) {
    return each->is_up() && each->id() != id;
  });
  if (asked == servers_.end()) return;
  using Eviction = cluster::Node::Eviction;
  const Eviction kind = world_.Chance(0.5) ? Eviction::kForced : Eviction::kIfSilent;
  (*asked)->life().node().Evict(cluster::ReadCluster(registry_).value(), id, kind);
}

void Simulation::Operate() {
  if (!disturbs_) return;
  const std::string cell = cells_[world_.Random(cells_.size())];
  const std::string id = servers_[world_.Random(servers_.size())]->id();
  const uint64_t wish = world_.Random(8);
  absl::Status asked;  // A refusal is as good as any other answer.
  if (wish < 3) {
    asked = cluster::AskToMove(registry_, cell, id).status();
  } else if (wish == 3) {
    Evict(id);
  } else {
    constexpr cluster::DrainWish kWishes[] = {cluster::DrainWish::kStay, cluster::DrainWish::kExit,
                                              cluster::DrainWish::kNone, cluster::DrainWish::kNone};
    asked = cluster::AskToDrain(registry_, id, kWishes[wish - 4]);
  }
  world_.Trace("an operator asks for ", wish, " of ", id, ", ", cell, ": ", asked.ToString());
  world_.After(world_.Between(absl::Milliseconds(200), calm_for_), [this] { Operate(); });
}

void Simulation::Calm() {
  world_.Trace("calm");
  disturbs_ = false;
  // A server that must drain may never be up again.
  for (const auto& server : servers_) {
    cluster::AskToDrain(registry_, server->id(), cluster::DrainWish::kNone).IgnoreError();
  }
  site_.weather = {};
  site_.registry_is_away = false;
  for (const auto& server : servers_) server->Heal();
}

std::string Simulation::Unserved() {
  const auto view = cluster::DecodeView(registry_.ReadAll().value());
  for (const std::string& cell : cells_) {
    const cluster::CellRecord* const record = view->FindCell(cell);
    if (record->state != cluster::CellState::kServed) return cell;
    const cluster::ServerRecord* const owner = view->FindServer(record->owner);
    const bool is_owned = owner != nullptr && owner->epoch == record->owner_epoch &&
                          owner->state == cluster::ServerState::kUp;
    if (!is_owned) return cell;
  }
  return "";
}

void Simulation::CheckDisk() {
  for (const std::string& cell : cells_) {
    for (int number = 0; number < kObjects; ++number) {
      const Object object = {cell, number};
      const uint64_t value = disk_.ValueOf(object);
      if (value >= golden_.acked(object)) continue;
      throw sim::Violation{StrCat("acked and lost: ", object.ToString(), " has ", value,
                                  " in the end, and ", golden_.acked(object), " was acked")};
    }
  }
}

void Simulation::Run() {
  for (const auto& server : servers_) {
    world_.After(world_.Between(absl::ZeroDuration(), absl::Seconds(3)),
                 [&server = *server] { server.Start(); });
  }
  StartClients();
  world_.After(absl::Seconds(5), [this] { Disturb(); });
  if (has_operator_) world_.After(absl::Seconds(6), [this] { Operate(); });
  world_.Run([] { return false; }, world_.Now() + kChaosTime);
  Calm();
  stops_ = true;
  const absl::Time deadline = world_.Now() + kCalmTime;
  world_.Run([this] { return writers_ == 0; }, deadline);
  if (writers_ != 0) throw sim::Violation{StrCat(writers_, " writers do not come to their end")};
  world_.Run([this] { return Unserved().empty(); }, deadline);
  if (const std::string cell = Unserved(); !cell.empty()) {
    throw sim::Violation{StrCat("nobody serves the cell ", cell, " in the end")};
  }
  CheckDisk();
}

}  // namespace

Outcome Simulate(uint64_t seed, Tracing tracing) {
  static const bool quiet = [] {
    // The detection costs more than all else.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return true;
  }();
  static_cast<void>(quiet);
  Outcome outcome;
  Simulation simulation(seed);
  if (tracing == Tracing::kOn) simulation.world().KeepTrace();
  try {
    simulation.Run();
  } catch (const sim::Violation& violation) {
    outcome.violation = violation.what;
  }
  outcome.step = simulation.world().step();
  outcome.fingerprint = simulation.world().fingerprint();
  outcome.takeovers = simulation.Takeovers();
  outcome.trace = simulation.world().trace();
  return outcome;
}

Outcome SimulateMany(uint64_t first, uint64_t count, uint64_t* seed) {
  std::atomic<uint64_t> next{first};
  std::atomic<uint64_t> found{UINT64_MAX};
  std::atomic<uint64_t> takeovers{0};
  const auto work = [&] {
    while (found == UINT64_MAX) {
      const uint64_t mine = next++;
      if (mine >= first + count) return;
      const Outcome outcome = Simulate(mine);
      takeovers += outcome.takeovers;
      if (outcome.violation.empty()) continue;
      uint64_t before = found;
      while (mine < before && !found.compare_exchange_weak(before, mine)) continue;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  if (found != UINT64_MAX) {
    *seed = found;
    return Simulate(found, Tracing::kOn);
  }
  Outcome all;
  all.takeovers = takeovers;
  return all;
}

std::string Describe(uint64_t seed, const Outcome& outcome, size_t lines_max) {
  std::string text;
  const size_t from = outcome.trace.size() - std::min(outcome.trace.size(), lines_max);
  if (from > 0) StrAppend(&text, "(", from, " lines before)\n");
  for (size_t i = from; i < outcome.trace.size(); ++i) StrAppend(&text, outcome.trace[i], "\n");
  StrAppend(&text, "seed ", seed, ", step ", outcome.step, ": ",
            outcome.violation.empty() ? "all promises were kept" : outcome.violation, "\n",
            "replay: build/release/bin/h5mirror_cluster_sim --seed ", seed, "\n");
  return text;
}

}  // namespace h5mirror::cluster_sim
