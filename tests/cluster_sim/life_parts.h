// The interfaces of the product that a life simulates.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_LIFE_PARTS_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_LIFE_PARTS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "tests/cluster_sim/life.h"

namespace h5mirror::cluster_sim {

// A clock that runs at its own rate.
class Life::LifeClock final : public Clock {
 public:
  explicit LifeClock(Life& life) : life_(life), born_at_(life.world_.Now()) {}

  absl::Time Now() override { return life_.world_.Now(); }
  absl::Duration Monotonic() override {
    return (life_.world_.Now() - born_at_) * life_.clock_rate_;
  }
  void Await(absl::Mutex& mutex, const absl::Condition& condition,
             absl::Duration timeout) override ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  Life& life_;
  const absl::Time born_at_;
};

// Messages to the registry get lost and come late, in both directions. A message on its way arrives
// whatever happens to its sender.
class Life::Client final : public cluster::Registry {
 public:
  explicit Client(Life& life) : life_(life) {}

  absl::StatusOr<cluster::RegistryView> ReadAll() override;
  absl::StatusOr<cluster::RegistryView> Read(absl::Span<const std::string> names) override;
  absl::Status CompareAndSet(absl::Span<const cluster::Expectation> expected,
                             absl::Span<const cluster::NewText> changes) override;

 private:
  // Calls `act` when the message arrives. False: no answer came in time.
  bool Call(std::function<void()> act);
  bool IsLost() const;
  absl::Duration Travel() const;

  Life& life_;
};

class Life::Evictor final : public cluster::Fencer {
 public:
  explicit Evictor(Life& life) : life_(life) {}
  absl::Status Fence(const cluster::FenceTarget& target) override;

 private:
  Life& life_;
};

class Life::Host final : public cluster::CellHost {
 public:
  explicit Host(Life& life) : life_(life) {}
  void Open(const std::string& cell, uint64_t epoch, cluster::Recovery recovery,
            Done done) override;
  void Close(const std::string& cell, uint64_t epoch, Done done) override;

 private:
  Life& life_;
};

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_LIFE_PARTS_H_
