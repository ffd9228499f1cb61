// One simulated life of a cluster, chosen by a seed.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_SIMULATION_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace h5mirror::cluster_sim {

struct Outcome {
  std::string violation;  // empty: none
  uint64_t step = 0;
  uint64_t fingerprint = 0;
  uint64_t takeovers = 0;          // cells that got an owner after their first one
  std::vector<std::string> trace;  // if it was asked for
};

enum class Tracing : uint8_t { kOff, kOn };

// Plays the life that `seed` chooses. The same each time.
Outcome Simulate(uint64_t seed, Tracing tracing = Tracing::kOff);

// Plays `count` seeds from `first` on, in as many threads as there are cores. Returns the lowest
// seed found that breaks a promise, with its trace; `seed` gets its number. If none does: the
// takeovers of all.
Outcome SimulateMany(uint64_t first, uint64_t count, uint64_t* seed);

// A failure, for people: the end of the trace, seed and step, and how to replay it.
std::string Describe(uint64_t seed, const Outcome& outcome, size_t lines_max);

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_SIMULATION_H_
