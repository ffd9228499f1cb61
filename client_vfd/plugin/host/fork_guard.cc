#include "client_vfd/plugin/host/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace h5mirror::vfd {
namespace {

std::atomic<unsigned> generation{0};

void InChild() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

unsigned ForkGeneration() {
  // Never unregistered: the library is linked with -z nodelete.
  static const int registered = pthread_atfork(nullptr, nullptr, InChild);
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace h5mirror::vfd
