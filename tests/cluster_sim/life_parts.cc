#include "tests/cluster_sim/life_parts.h"

#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "tests/cluster_sim/faults.h"

namespace h5mirror::cluster_sim {
namespace {

constexpr absl::Duration kAnswerMax = absl::Seconds(2);

}  // namespace

void Life::LifeClock::Await(absl::Mutex& mutex, const absl::Condition& condition,
                            absl::Duration timeout) {
  const absl::Time deadline = timeout == absl::InfiniteDuration()
                                  ? absl::InfiniteFuture()
                                  : Now() + timeout / life_.clock_rate_;
  mutex.Unlock();
  try {
    life_.Wait(
        [&mutex, &condition] {
          const absl::MutexLock lock(&mutex);
          return condition.Eval();
        },
        deadline);
  } catch (const sim::Killed&) {
    mutex.Lock();
    throw;
  }
  mutex.Lock();
}

bool Life::Client::IsLost() const {
  return life_.is_cut_off_ || life_.site_.registry_is_away ||
         life_.world_.Chance(life_.site_.weather.lost);
}

absl::Duration Life::Client::Travel() const {
  sim::World& world = life_.world_;
  if (world.Chance(life_.site_.weather.late)) {
    return world.Between(absl::Milliseconds(100), absl::Seconds(6));
  }
  return world.Between(absl::Microseconds(50), absl::Milliseconds(2));
}

bool Life::Client::Call(std::function<void()> act) {
  const auto is_answered = std::make_shared<bool>(false);
  if (!IsLost()) {
    const absl::Duration back = Travel();
    const bool is_answer_lost = IsLost();
    life_.world_.After(
        Travel(), [&world = life_.world_, act = std::move(act), is_answered, back, is_answer_lost] {
          act();
          if (!is_answer_lost) world.After(back, [is_answered] { *is_answered = true; });
        });
  }
  life_.Wait([is_answered] { return *is_answered; }, life_.world_.Now() + kAnswerMax);
  return *is_answered;
}

absl::StatusOr<cluster::RegistryView> Life::Client::ReadAll() {
  const auto view = std::make_shared<cluster::RegistryView>();
  const bool is_answered =
      Call([&registry = life_.site_.registry, view] { *view = registry.ReadAll().value(); });
  if (!is_answered) return absl::UnavailableError("no answer");
  return *view;
}

absl::StatusOr<cluster::RegistryView> Life::Client::Read(absl::Span<const std::string> names) {
  const auto view = std::make_shared<cluster::RegistryView>();
  const bool is_answered = Call([&registry = life_.site_.registry, view,
                                 wanted = std::vector<std::string>(names.begin(), names.end())] {
    *view = registry.Read(wanted).value();
  });
  if (!is_answered) return absl::UnavailableError("no answer");
  return *view;
}

absl::Status Life::Client::CompareAndSet(absl::Span<const cluster::Expectation> expected,
                                         absl::Span<const cluster::NewText> changes) {
  const auto result = std::make_shared<absl::Status>();
  const bool is_answered =
      Call([&registry = life_.site_.registry, result,
            held = std::vector<cluster::Expectation>(expected.begin(), expected.end()),
            set = std::vector<cluster::NewText>(changes.begin(), changes.end())] {
        *result = registry.CompareAndSet(held, set);
      });
  if (!is_answered) return absl::UnavailableError("unknown");
  return *result;
}

// As CephFencer: each step may be the last one of this process.
absl::Status Life::Evictor::Fence(const cluster::FenceTarget& target) {
  Disk& disk = life_.site_.disk;
  life_.Sleep(absl::Milliseconds(5), absl::Milliseconds(400));
  if (Is(Fault::kNoEviction)) return absl::OkStatus();
  if (Is(Fault::kLateEviction)) {
    life_.world_.After(absl::Seconds(2), [&disk, session = target.session] {
      disk.EndSession(session);
      disk.Block(session);
    });
    return absl::OkStatus();
  }
  disk.EndSession(target.session);
  life_.Sleep(absl::Milliseconds(5), absl::Milliseconds(400));
  if (life_.world_.Chance(life_.site_.weather.fencing_fails))
    return absl::UnavailableError("no answer");
  disk.Block(target.session);
  life_.Sleep(absl::Milliseconds(5), absl::Milliseconds(400));
  return absl::OkStatus();
}

void Life::Host::Open(const std::string& cell, uint64_t epoch, cluster::Recovery recovery,
                      Done done) {
  life_.Spawn([&life = life_, cell, epoch, recovery, done = std::move(done)] {
    done(life.OpenStore(cell, epoch, recovery));
  });
}

void Life::Host::Close(const std::string& cell, uint64_t /*epoch*/, Done done) {
  life_.Spawn([&life = life_, cell, done = std::move(done)] { done(life.CloseStore(cell)); });
}

}  // namespace h5mirror::cluster_sim
