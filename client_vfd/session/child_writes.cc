#include "client_vfd/session/child_writes.h"

#include <sys/mman.h>

namespace h5mirror::vfd {
namespace {

constexpr size_t kCounters = 1024;

std::atomic<uint32_t>* MapCounters() {
  void* page = mmap(nullptr, kCounters * sizeof(std::atomic<uint32_t>), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  // Without shared memory a child's writes are only found at the next open, by the file's times.
  static std::atomic<uint32_t> fallback[kCounters];
  return page == MAP_FAILED ? fallback : static_cast<std::atomic<uint32_t>*>(page);
}

}  // namespace

std::atomic<uint32_t>* ChildWritesCounter(const Bytes16& session_id) {
  static std::atomic<uint32_t>* const counters = MapCounters();
  return &counters[(session_id[0] | session_id[1] << 8) % kCounters];
}

}  // namespace h5mirror::vfd
