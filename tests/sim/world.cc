#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

namespace h5mirror::sim {
namespace {

// Any moment will do; a round one is easier to read in a trace.
absl::Time Start() { return absl::FromUnixSeconds(1'700'000'000); }

constexpr size_t kTraceLinesMax = 200'000;

}  // namespace

World::World(uint64_t seed) : now_(Start()), random_(seed * 0x9e3779b97f4a7c15u + 1) {}

World::~World() {
  while (!waiters_.empty()) Kill(waiters_.front().owner);
}

absl::Duration World::Between(absl::Duration least, absl::Duration most) {
  const int64_t span = absl::ToInt64Microseconds(most - least);
  return least + absl::Microseconds(Random(static_cast<uint64_t>(span) + 1));
}

void World::After(absl::Duration delay, std::function<void()> event) {
  events_.push({now_ + std::max(delay, absl::ZeroDuration()), next_number_++, std::move(event)});
}

void World::Spawn(const void* owner, std::function<void()> body) {
  waiters_.push_back(Waiter{owner, std::make_unique<Fiber>(std::move(body)), nullptr,
                            absl::InfiniteFuture(), false, true});
}

void World::Wait(std::function<bool()> condition, absl::Time deadline) {
  Waiter& self = *running_;
  self.condition = std::move(condition);
  self.deadline = deadline;
  self.fiber->Yield();
  if (self.killed) throw Killed();
}

void World::Resume(std::list<Waiter>::iterator waiter) {
  waiter->ready = false;
  waiter->condition = nullptr;
  Waiter* const before = std::exchange(running_, &*waiter);
  waiter->fiber->Resume();
  running_ = before;
  if (waiter->fiber->ended()) waiters_.erase(waiter);
}

void World::Kill(const void* owner) {
  for (bool found = true; found;) {
    found = false;
    for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
      if (waiter->owner != owner) continue;
      found = true;
      waiter->killed = true;
      if (waiter->ready) {
        waiter->fiber->Forget();  // It never began.
        waiters_.erase(waiter);
      } else {
        Resume(waiter);
      }
      break;
    }
  }
}

bool World::Lives(const void* owner) const {
  return std::any_of(waiters_.begin(), waiters_.end(),
                     [&](const Waiter& waiter) { return waiter.owner == owner; });
}

bool World::ResumeOne() {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
    const bool goes_on = waiter->ready || now_ >= waiter->deadline ||
                         (waiter->condition != nullptr && waiter->condition());
    if (!goes_on) continue;
    Resume(waiter);
    return true;
  }
  return false;
}

void World::Run(const std::function<bool()>& done, absl::Time deadline) {
  while (now_ < deadline && !done()) {
    ++step_;
    if (!ResumeOne()) {
      absl::Time next = deadline;
      for (const Waiter& waiter : waiters_) next = std::min(next, waiter.deadline);
      if (!events_.empty() && events_.top().time <= next) {
        const Event event = events_.top();
        events_.pop();
        now_ = event.time;
        event.run();
      } else {
        now_ = next;
      }
    }
    if (!failure_.empty()) throw Violation{failure_};
  }
}

void World::Fail(std::string what) {
  Trace("VIOLATION: ", what);
  if (failure_.empty()) failure_ = std::move(what);
}

void World::TraceLine(std::string line) {
  for (const char c : line) fingerprint_ = (fingerprint_ ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  fingerprint_ = (fingerprint_ ^ static_cast<uint64_t>(absl::ToUnixNanos(now_))) * 0x100000001b3;
  if (!keeps_trace_ || trace_.size() >= kTraceLinesMax) return;
  const double seconds = absl::ToDoubleSeconds(now_ - Start());
  trace_.push_back(absl::StrCat("step ", step_, " t=", seconds, " ", line));
}

}  // namespace h5mirror::sim
