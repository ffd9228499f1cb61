#include "tests/sim/simulation.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/local_record.h"
#include "base/strings.h"
#include "spdlog/spdlog.h"
#include "tests/sim/golden.h"
#include "tests/sim/network.h"
#include "tests/sim/planted.h"
#include "tests/sim/process.h"
#include "tests/sim/program.h"
#include "tests/sim/server.h"
#include "tests/sim/world.h"

namespace h5mirror::sim {
namespace {

constexpr absl::Duration kChaosTime = absl::Seconds(60);
// No program waits longer, whatever happens to its server.
constexpr absl::Duration kProgramTime = absl::Minutes(10);
constexpr int kRoundsMax = 8;

// A directory in memory, removed with its thread.
class Scratch {
 public:
  Scratch() {
    const char* const shm = "/dev/shm";
    const char* const temporary = std::getenv("TMPDIR");
    std::string name = access(shm, W_OK) == 0 ? shm : temporary != nullptr ? temporary : "/tmp";
    name += "/h5mirror_sim.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const std::filesystem::path& Directory() {
  thread_local const Scratch scratch;
  return scratch.path();
}

class Simulation {
 public:
  explicit Simulation(uint64_t seed);
  ~Simulation();
  World& world() { return world_; }
  void Run();

 private:
  struct Client {
    std::unique_ptr<Process> process;
    std::unique_ptr<Program> program;
    bool over = false;
  };

  void ChooseSettings();
  Client& StartProgram(std::function<void(Program&)> body);
  void StartRandomProgram();
  void EndProgram(Client& client);
  void Reap();
  void StartServer();
  void ServerGoes();
  void Disturb();
  void DisturbNetwork();
  void DisturbServer();
  void DisturbClient();
  size_t Living() const;
  bool AllOver() const { return Living() == 0; }
  void Calm();
  void Converge();
  // Why the two sides are not equal; empty: they are.
  std::string Apart(LocalFile& file);

  World world_;
  Golden golden_{world_};
  Settings settings_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Client>> clients_;
  int programs_left_ = 0;
  size_t programs_at_once_ = 1;
  int programs_ = 0;
  bool disturbs_ = true;
  bool network_fails_ = false, server_fails_ = false, clients_fail_ = false;
  absl::Duration calm_for_ = absl::Seconds(2);  // at most, between two disturbances
};

Simulation::Simulation(uint64_t seed) : world_(seed) {
  ChooseSettings();
  std::filesystem::remove_all(Directory());
  std::filesystem::create_directory(Directory());
  const uint64_t files = 1 + world_.Random(2);
  for (uint64_t i = 0; i < files; ++i) {
    const std::string name = StrCat(std::string(1, static_cast<char>('a' + i)), ".h5");
    golden_.Add(std::make_shared<LocalFile>((Directory() / name).native(), name, 100 + i));
  }
  server_ = std::make_unique<Server>(world_, golden_,
                                     world_.Between(absl::Seconds(2), absl::Seconds(10)));
  network_ = std::make_unique<Network>(world_, *server_);
}

Simulation::~Simulation() {
  for (const auto& client : clients_) {
    if (client->process->alive()) client->process->Kill();
  }
  clients_.clear();
  world_.Kill(server_.get());
  world_.DropEvents();
  network_.reset();
  world_.DropEvents();
}

void Simulation::ChooseSettings() {
  settings_.timeout = world_.Between(absl::Seconds(1), absl::Seconds(5));
  if (world_.Chance(0.3)) settings_.linger = world_.Between(absl::Seconds(1), absl::Seconds(20));
  if (world_.Chance(0.2)) settings_.outage_wait = absl::Seconds(3);
  if (world_.Chance(0.3)) settings_.ack_commit = static_cast<H5mAck>(world_.Random(2));
  if (world_.Chance(0.3)) settings_.window_bytes = 1 + world_.Random(6000);
  if (world_.Chance(0.1)) settings_.bandwidth_bytes_per_second = 20000 + world_.Random(100000);
  if (world_.Chance(0.2)) settings_.version_every = absl::Seconds(1);
  if (world_.Chance(0.2)) settings_.version_min_interval = absl::Seconds(5);
  settings_.checksum = world_.Chance(0.5);
  settings_.unclean_closes = world_.Chance(0.2);
  settings_.plain_writers = world_.Chance(0.2);
  if (world_.Chance(0.03)) {  // As large as the bytes sent before its barrier.
    settings_.write_bytes_max = 400'000;
    settings_.file_bytes_max = 900'000;
    // At the least bandwidth no program would live long enough to send it.
    settings_.bandwidth_bytes_per_second = 0;
  }
  golden_.ExpectVersions(settings_.version_min_interval == absl::ZeroDuration()
                             ? Golden::Versions::kEachCommit
                             : Golden::Versions::kSome);
  programs_left_ = 2 + static_cast<int>(world_.Random(4));
  if (world_.Chance(0.3)) programs_at_once_ = 2;
  network_fails_ = world_.Chance(0.6);
  server_fails_ = world_.Chance(0.6);
  clients_fail_ = world_.Chance(0.4);
  calm_for_ = world_.Between(absl::Milliseconds(200), absl::Seconds(4));
}

Simulation::Client& Simulation::StartProgram(std::function<void(Program&)> body) {
  auto client = std::make_unique<Client>();
  client->process = std::make_unique<Process>(world_, *network_, golden_, ++programs_);
  client->program = std::make_unique<Program>(*client->process, settings_);
  Client& started = *client;
  clients_.push_back(std::move(client));
  world_.Spawn(started.process.get(), [this, &started, body = std::move(body)] {
    body(*started.program);
    started.process->Drain();
    world_.Sleep(world_.Between(absl::ZeroDuration(), absl::Milliseconds(500)));
    world_.After(absl::ZeroDuration(), [this, &started] { EndProgram(started); });
  });
  return started;
}

void Simulation::EndProgram(Client& client) {
  if (client.over) return;
  client.over = true;
  world_.Trace("process ", client.process->number(), ": ends");
  client.process->Kill();
  client.program->NoteKill();
}

void Simulation::StartRandomProgram() {
  if (programs_left_ == 0 || !disturbs_) return;
  if (Living() >= programs_at_once_) {
    return world_.After(absl::Milliseconds(100), [this] { StartRandomProgram(); });
  }
  --programs_left_;
  Client& client = StartProgram(
      [this](Program& program) { program.Run(1 + static_cast<int>(world_.Random(4))); });
  if (world_.Chance(0.1)) {
    client.process->clock_offset =
        world_.Between(absl::ZeroDuration(), absl::Hours(1)) - absl::Minutes(30);
  }
  world_.After(world_.Between(absl::ZeroDuration(), absl::Seconds(8)),
               [this] { StartRandomProgram(); });
}

size_t Simulation::Living() const {
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(),
                                           [](const auto& client) { return !client->over; }));
}

void Simulation::StartServer() {
  if (server_->up()) return;
  server_->Start();
  if (server_->up() && world_.Chance(0.5)) golden_.Check(server_->store());
}

void Simulation::DisturbNetwork() {
  switch (world_.Random(7)) {
    case 0:
      return network_->BreakAll();
    case 1:
      world_.Trace("network: nothing gets through");
      return network_->Hole(world_.Now() +
                            world_.Between(absl::Milliseconds(100), absl::Seconds(12)));
    case 2:
      world_.Trace("network: refuses connections");
      return network_->Refuse(world_.Now() +
                              world_.Between(absl::Milliseconds(100), absl::Seconds(5)));
    case 3:
    case 4:
      return network_->DelayOne();
    default:
      return network_->BreakOne();
  }
}

void Simulation::ServerGoes() {
  world_.After(world_.Between(absl::Milliseconds(50), absl::Seconds(6)), [this] { StartServer(); });
}

void Simulation::DisturbServer() {
  if (!server_->accepts()) return;
  switch (world_.Random(7)) {
    case 0:
    case 1:
      server_->LosePower();
      return ServerGoes();
    case 2:
      server_->Die();
      return ServerGoes();
    case 3:
      world_.Spawn(server_.get(), [this] { server_->StopPolitely(); });
      return world_.After(world_.Between(absl::Seconds(4), absl::Seconds(8)),
                          [this] { StartServer(); });
    case 4:
      world_.Trace("server: its clock is set");
      return server_->clock().Step(world_.Between(absl::ZeroDuration(), absl::Minutes(2)) -
                                   absl::Minutes(1));
    case 5:  // Between durable and applied.
      return server_->WhenDurable([this] {
        if (!disturbs_ || !server_->accepts()) return;
        server_->LosePower();
        ServerGoes();
      });
    default:
      world_.Trace("server: its disk is slow");
      return server_->HoldDisk(world_.Now() +
                               world_.Between(absl::Milliseconds(100), absl::Seconds(7)));
  }
}

void Simulation::DisturbClient() {
  std::vector<Client*> living;
  for (const auto& client : clients_) {
    if (!client->over) living.push_back(client.get());
  }
  if (living.empty()) return;
  Client& client = *living[world_.Random(living.size())];
  if (world_.Chance(0.3)) {
    world_.Trace("process ", client.process->number(), ": forks");
    return client.process->LeaveStreams();
  }
  world_.Trace("process ", client.process->number(), ": is killed");
  EndProgram(client);
}

void Simulation::Disturb() {
  if (!disturbs_) return;
  const uint64_t dice = world_.Random(3);
  if (dice == 0 && network_fails_) DisturbNetwork();
  if (dice == 1 && server_fails_) DisturbServer();
  if (dice == 2 && clients_fail_) DisturbClient();
  world_.After(world_.Between(absl::Milliseconds(20), calm_for_), [this] { Disturb(); });
}

void Simulation::Calm() {
  disturbs_ = false;
  network_->Heal();
  server_->HoldDisk(absl::InfinitePast());
  world_.Trace("calm");
}

void Simulation::Run() {
  server_->Start();
  StartRandomProgram();
  Disturb();
  world_.Run([this] { return AllOver() && programs_left_ == 0; }, world_.Now() + kChaosTime);
  Calm();
  const absl::Time deadline = world_.Now() + kProgramTime;
  world_.Run([this] { return AllOver(); }, deadline);
  if (!AllOver()) throw Violation{"a program does not come to its end"};
  Converge();
}

// The server may still be on its way up or down, and a lease may still be a dead client's.
void Simulation::Converge() {
  std::string apart;
  for (int round = 0; round < kRoundsMax; ++round) {
    world_.Run([this] { return server_->accepts(); }, world_.Now() + absl::Seconds(30));
    StartServer();
    Client& client = StartProgram([this](Program& program) {
      for (const auto& file : golden_.files()) {
        const auto record = ReadLocalRecord(file->path());
        const bool given_up = record.ok() && record->state == RecordState::kDiverged;
        program.Visit(*file, given_up ? Visiting::kCreated : Visiting::kExisting);
      }
    });
    world_.Run([&] { return client.over; }, world_.Now() + kProgramTime);
    if (!client.over) throw Violation{"the last program does not come to its end"};
    server_->CheckAtRest();
    apart.clear();
    for (const auto& file : golden_.files()) apart += Apart(*file);
    world_.Trace("round ", round, ": ", apart.empty() ? "in sync" : apart);
    if (apart.empty()) return world_.Run([] { return true; }, absl::InfiniteFuture());
    // For a lease that is never given back, and a connection that never ends.
    const absl::Time later = world_.Now() + absl::Seconds(15);
    world_.Run([] { return false; }, later);
  }
  throw Violation{StrCat("it does not converge: ", apart)};
}

std::string Simulation::Apart(LocalFile& file) {
  const auto record = ReadLocalRecord(file.path());
  if (!record.ok()) return StrCat(file.name(), " has no record; ");
  const auto opened = server_->store().OpenFile(file.name());
  if (!opened.ok()) return StrCat(file.name(), ": ", opened.status().ToString(), "; ");
  const auto info = (*opened)->Info();
  if (!info.ok()) return StrCat(file.name(), ": ", info.status().ToString(), "; ");
  const ImagePtr head = golden_.NewestOf(*info);
  if (head == nullptr || head->bytes != file.bytes()) {
    return StrCat(file.name(), ": the head is not the local file; ");
  }
  if (record->state != RecordState::kClean || record->stat != file.Stat()) {
    return StrCat(file.name(), ": the record says ", static_cast<int>(record->state), " ",
                  record->detail, "; ");
  }
  if (record->cut != info->last_cut) return StrCat(file.name(), ": the record names another cut; ");
  const auto state = server_->mirrors().StatusOf(*info).state();
  if (state != v1::MIRROR_STATE_IN_SYNC) {
    return StrCat(file.name(), ": the server says ", v1::MirrorState_Name(state), "; ");
  }
  return "";
}

}  // namespace

Outcome Simulate(uint64_t seed, Tracing tracing) {
  static const bool quiet = [] {
    spdlog::set_level(spdlog::level::off);
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
  } catch (const Violation& violation) {
    outcome.violation = violation.what;
  }
  outcome.step = simulation.world().step();
  outcome.fingerprint = simulation.world().fingerprint();
  outcome.trace = simulation.world().trace();
  return outcome;
}

Outcome SimulateMany(uint64_t first, uint64_t count, uint64_t* seed) {
  std::atomic<uint64_t> next{first};
  std::atomic<uint64_t> found{UINT64_MAX};
  const auto work = [&] {
    while (found == UINT64_MAX) {
      const uint64_t mine = next++;
      if (mine >= first + count) return;
      if (Simulate(mine).violation.empty()) continue;
      uint64_t before = found;
      while (mine < before && !found.compare_exchange_weak(before, mine)) continue;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  if (found == UINT64_MAX) return {};
  *seed = found;
  return Simulate(found, Tracing::kOn);
}

std::string Describe(uint64_t seed, const Outcome& outcome, size_t lines_max) {
  std::string text;
  const size_t from = outcome.trace.size() - std::min(outcome.trace.size(), lines_max);
  if (from > 0) StrAppend(&text, "(", from, " lines before)\n");
  for (size_t i = from; i < outcome.trace.size(); ++i) StrAppend(&text, outcome.trace[i], "\n");
  StrAppend(&text, "seed ", seed, ", step ", outcome.step, ": ",
            outcome.violation.empty() ? "all promises were kept" : outcome.violation, "\n",
            "replay: ./dev sim --seed ", seed, "\n");
  return text;
}

}  // namespace h5mirror::sim
