#include "base/free_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/signal_block.h"

namespace h5mirror {
namespace {

constexpr unsigned kThreadsPerCoreMax = 32;
constexpr size_t kOtherThreads = 12;

constexpr std::chrono::milliseconds kGoneWait(100);
constexpr size_t kAllocationBytes = 4096;

// Where it is not limited, nobody needs the arenas ahead.
bool HasAddressLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

struct Probe {
  std::mutex* gate;
  bool allocates;
  pthread_t thread = {};
  pid_t id = 0;
};

// Each waits here until all have begun.
void* WaitForAll(void* argument) {
  Probe& probe = *static_cast<Probe*>(argument);
  // The first allocation of a thread takes 64 MiB of addresses (an arena of glibc's), which later
  // threads use.
  if (probe.allocates) {
    void* volatile kept = malloc(kAllocationBytes);  // Else the compiler leaves both calls out.
    free(kept);
  }
  const std::lock_guard<std::mutex> lock(*probe.gate);
  probe.id = gettid();
  return nullptr;
}

// A joined thread counts against the limits until the kernel has let go of it, a moment later.
void AwaitGone(const std::vector<Probe>& probes) {
  const auto give_up = std::chrono::steady_clock::now() + kGoneWait;
  for (const Probe& probe : probes) {
    while (syscall(SYS_tgkill, getpid(), probe.id, 0) == 0) {
      if (std::chrono::steady_clock::now() > give_up) return;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

}  // namespace

size_t ThreadsOfGrpc() {
  return kOtherThreads + std::clamp(std::thread::hardware_concurrency(), 2u, kThreadsPerCoreMax);
}

bool CanStartThreads(size_t count) {
  const SignalBlock block;
  std::mutex gate;
  const Probe one{&gate, HasAddressLimit()};
  std::vector<Probe> probes(count, one);
  size_t begun = 0;
  {
    const std::lock_guard<std::mutex> lock(gate);
    while (begun < count &&
           pthread_create(&probes[begun].thread, nullptr, WaitForAll, &probes[begun]) == 0) {
      ++begun;
    }
  }
  probes.resize(begun, one);
  for (const Probe& probe : probes) pthread_join(probe.thread, nullptr);
  AwaitGone(probes);
  return begun == count;
}

std::string TooFewThreads(size_t count) {
  return "fewer than " + std::to_string(count) +
         " threads are left to the program: raise `ulimit -u` and `ulimit -v`, or pids.max of its "
         "cgroup (TasksMax= of a unit)";
}

}  // namespace h5mirror
