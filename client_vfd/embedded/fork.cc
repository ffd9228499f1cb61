#include "client_vfd/embedded/fork.h"

#include <atomic>

#include "absl/time/clock.h"

namespace h5mirror::vfd {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(5);

std::atomic<unsigned> forks_seen{0};

}  // namespace

unsigned ForksSeen() { return forks_seen; }
void CountFork() { ++forks_seen; }

bool LockBefore(absl::Mutex& mutex, absl::Time deadline) {
  while (!mutex.TryLock()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kPoll);
  }
  return true;
}

}  // namespace h5mirror::vfd
