#include "client_vfd/session/child_writes.h"

#include <sys/mman.h>

#include <utility>

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

std::atomic<uint32_t>& CounterOf(const Bytes16& session_id) {
  static std::atomic<uint32_t>* const counters = MapCounters();
  return counters[(session_id[0] | session_id[1] << 8) % kCounters];
}

}  // namespace

void NoteChildWrite(const Bytes16& session_id) {
  CounterOf(session_id).fetch_add(1, std::memory_order_relaxed);
}

WriteWatch::WriteWatch(const Bytes16& session_id)
    : child_writes_(CounterOf(session_id)), seen_(child_writes_.load()) {}

bool WriteWatch::TakeChildWrites() {
  const uint32_t now = child_writes_.load(std::memory_order_relaxed);
  return std::exchange(seen_, now) != now;
}

}  // namespace h5mirror::vfd
