// Virtual time, one source of randomness, and the order in which things happen.
#ifndef H5MIRROR_TESTS_SIM_WORLD_H_
#define H5MIRROR_TESTS_SIM_WORLD_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/sim/fiber.h"

namespace h5mirror::sim {

// A broken promise; ends the run.
struct Violation {
  std::string what;
};

// Runs events and fibers, one at a time, in the order of virtual time. An event does not wait; a
// fiber may, in Wait(). Not thread-safe: each simulation has a thread.
class World {
 public:
  explicit World(uint64_t seed);
  ~World();
  World(const World&) = delete;

  // Only goes forward.
  absl::Time Now() const { return now_; }

  // ---- Randomness ----
  uint64_t Random(uint64_t below) { return below == 0 ? 0 : random_() % below; }
  bool Chance(double probability) {
    return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }
  absl::Duration Between(absl::Duration least, absl::Duration most);

  // ---- Events ----
  void After(absl::Duration delay, std::function<void()> event);

  // ---- Fibers ----
  // `owner` names a group of fibers that Kill() ends.
  void Spawn(const void* owner, std::function<void()> body);
  // In a fiber: waits until `condition` holds or the time is `deadline`. Throws Killed.
  void Wait(std::function<bool()> condition, absl::Time deadline);
  void Sleep(absl::Duration time) {
    Wait([] { return false; }, now_ + time);
  }
  // Forgets all coming events.
  void DropEvents() { events_ = {}; }
  // Ends the fibers of `owner` where they wait. Call it from outside of them.
  void Kill(const void* owner);
  // Whether a fiber of `owner` has not ended.
  bool Lives(const void* owner) const;

  // Runs until `done` holds or the time is `deadline`. Throws Violation.
  void Run(const std::function<bool()>& done, absl::Time deadline);

  // ---- Telling ----
  // Ends the run at its next step; the first call counts.
  void Fail(std::string what);
  template <typename... Part>
  void Trace(const Part&... parts) {
    TraceLine(absl::StrCat(parts...));
  }
  uint64_t step() const { return step_; }
  // The same for the same run.
  uint64_t fingerprint() const { return fingerprint_; }
  const std::vector<std::string>& trace() const { return trace_; }
  void KeepTrace() { keeps_trace_ = true; }

 private:
  struct Event {
    absl::Time time;
    uint64_t number;
    std::function<void()> run;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  struct Waiter {
    const void* owner;
    std::unique_ptr<Fiber> fiber;
    std::function<bool()> condition;
    absl::Time deadline;
    bool killed = false;
    bool ready = false;
  };

  void TraceLine(std::string line);
  // True if one of the waiting fibers had something to do.
  bool ResumeOne();
  void Resume(std::list<Waiter>::iterator waiter);

  absl::Time now_;
  std::mt19937_64 random_;
  uint64_t next_number_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::list<Waiter> waiters_;
  Waiter* running_ = nullptr;
  uint64_t step_ = 0;
  uint64_t fingerprint_ = 0;
  bool keeps_trace_ = false;
  std::vector<std::string> trace_;
  std::string failure_;
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_WORLD_H_
