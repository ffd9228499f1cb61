#include "tests/sim/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace h5mirror::sim {
namespace {

// SQLite's parser takes most of it.
constexpr size_t kStackBytes = 256 << 10;

// Stacks are reused: a simulation begins thousands of fibers.
thread_local std::vector<char*> free_stacks;

char* TakeStack() {
  if (!free_stacks.empty()) {
    char* stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
  }
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) {
    std::perror("mmap of a stack");
    std::abort();
  }
  return static_cast<char*>(stack);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(TakeStack()) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = &caller_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  if (!ended_) {
    std::fputs("a fiber is destroyed that has not ended\n", stderr);
    std::abort();
  }
  free_stacks.push_back(stack_);
}

void Fiber::Enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  try {
    self->body_();
  } catch (const Killed&) {
    // The fiber has ended where it waited.
  }
  self->ended_ = true;
}

void Fiber::Resume() { swapcontext(&caller_, &own_); }

void Fiber::Yield() { swapcontext(&own_, &caller_); }

}  // namespace h5mirror::sim
