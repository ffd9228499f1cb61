#include "tests/sim/server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "server/metrics/metrics.h"
#include "tests/sim/planted.h"
#include "tests/sim/server_call.h"

namespace h5mirror::sim {
namespace {

constexpr absl::Duration kTimerPeriod = absl::Milliseconds(250);
constexpr absl::Duration kDiskPeriod = absl::Milliseconds(12);
constexpr absl::Duration kStopTime = absl::Seconds(3);
constexpr size_t kOpenBarriersMax = 16;

// A registry takes longer to make than a simulation.
server::Metrics& SharedMetrics() {
  thread_local server::Metrics metrics(uint64_t{1} << 30);
  return metrics;
}

}  // namespace

void SimClock::Await(absl::Mutex& mutex, const absl::Condition& condition, absl::Duration timeout) {
  const absl::Time deadline = world_.Now() + timeout;
  while (!condition.Eval() && world_.Now() < deadline) {
    mutex.Unlock();
    try {
      world_.Wait(
          [&] {
            const absl::MutexLock lock(&mutex);
            return condition.Eval();
          },
          deadline);
    } catch (const Killed&) {
      mutex.Lock();
      throw;
    }
    mutex.Lock();
  }
}

Server::Server(World& world, Golden& golden, absl::Duration lease_ttl)
    : world_(world),
      golden_(golden),
      clock_(world),
      lease_ttl_(lease_ttl),
      disk_(std::make_unique<FaultEnv>()) {}

Server::~Server() {
  if (up()) Forget(std::move(disk_));
}

void Server::Start() {
  told_at_change_ = disk_->change_count();
  disk_->SetTime([this] { return clock_.Now(); });
  disk_->SetLie(PlantedLie());
  store::StoreOptions options;
  options.background_threads = 0;
  options.memory_max_bytes = uint64_t{64} << 20;
  options.durable_every = absl::Seconds(2);
  auto store = store::Store::Open(*disk_, options);
  if (!store.ok())
    return world_.Fail(StrCat("the store does not open: ", store.status().ToString()));
  store_ = *std::move(store);
  leases_ = std::make_unique<server::LeaseTable>(clock_, lease_ttl_);
  memory_ = std::make_unique<server::SessionMemory>();
  commits_ = std::make_unique<server::CommitBoard>();
  mirrors_ = std::make_unique<server::MirrorStates>(clock_);
  environment_.reset(new server::SessionEnvironment{*store_, *leases_, clock_, SharedMetrics(),
                                                    *memory_, *commits_, kOpenBarriersMax, nullptr,
                                                    mirrors_.get()});
  const uint64_t life = ++life_;
  stopping_ = false;
  world_.Trace("server: starts");
  world_.After(kTimerPeriod, [this, life] { Timer(life); });
  world_.After(kDiskPeriod, [this, life] { Background(life); });
}

void Server::Forget(std::unique_ptr<FaultEnv> disk) {
  ++life_;
  world_.Kill(this);  // Opens that wait.
  const std::vector<ServerCall*> calls = std::exchange(calls_, {});
  for (ServerCall* call : calls) call->Vanish();
  environment_.reset();
  // What its end does to its disk is of no matter: the disk has been replaced.
  const std::unique_ptr<FaultEnv> old = std::exchange(disk_, std::move(disk));
  store_.reset();
  mirrors_.reset();
  commits_.reset();
  memory_.reset();
  leases_.reset();
}

void Server::LosePower() {
  world_.Trace("server: loses its power");
  CrashPoint point;
  point.change_count = told_at_change_ + world_.Random(disk_->change_count() - told_at_change_ + 1);
  point.seed = world_.Random(UINT64_MAX);
  const Unsynced fates[] = {Unsynced::kDropped, Unsynced::kKept, Unsynced::kMixed};
  point.data = fates[world_.Random(3)];
  point.names = fates[world_.Random(3)];
  point.order = world_.Chance(0.5) ? NameOrder::kJournal : NameOrder::kPerDirectory;
  Forget(disk_->Crash(point));
}

void Server::Die() {
  world_.Trace("server: is killed");
  Forget(disk_->CopyNow());
}

void Server::StopPolitely() {
  world_.Trace("server: stops");
  stopping_ = true;
  for (ServerCall* call : std::vector<ServerCall*>(calls_)) call->OnStop();
  const absl::Time deadline = world_.Now() + kStopTime;
  while (!calls_.empty() && world_.Now() < deadline) {
    bool all_over = true;
    for (const ServerCall* call : calls_) all_over = all_over && call->over();
    if (all_over) break;
    world_.Sleep(absl::Milliseconds(50));
  }
  world_.After(absl::ZeroDuration(), [this, life = life_] {
    if (!up() || life != life_) return;
    if (const absl::Status closed = store_->Close(absl::Seconds(5)); !closed.ok()) {
      world_.Fail(StrCat("the store does not close: ", closed.ToString()));
    }
    Forget(disk_->CopyNow());
  });
}

void Server::Timer(uint64_t life) {
  if (life != life_) return;
  for (ServerCall* call : std::vector<ServerCall*>(calls_)) {
    if (std::find(calls_.begin(), calls_.end(), call) != calls_.end()) call->OnTimer();
  }
  leases_->RevokeExpired();
  world_.After(kTimerPeriod, [this, life] { Timer(life); });
}

void Server::Background(uint64_t life) {
  if (life != life_) return;
  if (world_.Now() >= disk_held_until_) {
    while (world_.Chance(0.7) && store_->RunBackground()) continue;
  }
  world_.After(kDiskPeriod, [this, life] { Background(life); });
}

bool Server::HasCallOf(const std::string& name) const {
  return std::any_of(calls_.begin(), calls_.end(), [&name](const ServerCall* call) {
    return !call->over() && call->name() == name;
  });
}

void Server::CheckAtRest() {
  golden_.Check(*store_);
  while (store_->RunBackground()) continue;
  for (const auto& file : golden_.files()) {
    const auto opened = store_->OpenFile(file->name());
    if (!opened.ok()) continue;  // Golden has looked at it.
    const auto info = (*opened)->Info();
    if (!info.ok() || info->durable_cut == 0) continue;
    auto tree = disk_->OpenTree("");
    auto head = (*tree)->Open(file->name(), OpenKind::kRead, 0);
    if (!head.ok()) {
      return world_.Fail(StrCat(file->name(), ": the head: ", head.status().ToString()));
    }
    std::string bytes((*head)->Size().value_or(0), '\0');
    if (!ReadOrZeros(**head, 0, absl::MakeSpan(bytes)).ok()) bytes.clear();
    // What a writer appends lies beyond the end of the newest cut until it makes one, or is lost.
    const bool is_written = leases_->HolderOf(file->name()).has_value() ||
                            (RevocationsAreMissed() && HasCallOf(file->name()));
    if (is_written) bytes.resize(std::min<size_t>(bytes.size(), golden_.SizeOf(*info)));
    golden_.CheckHead(*file, *info, bytes);
  }
}

}  // namespace h5mirror::sim
