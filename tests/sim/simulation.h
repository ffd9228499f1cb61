// One simulated life of a server, its network and a client machine, chosen by a seed.
#ifndef H5MIRROR_TESTS_SIM_SIMULATION_H_
#define H5MIRROR_TESTS_SIM_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace h5mirror::sim {

struct Outcome {
  std::string violation;  // empty: none
  uint64_t step = 0;
  uint64_t fingerprint = 0;
  std::vector<std::string> trace;  // if it was asked for
};

enum class Tracing : uint8_t { kOff, kOn };

// Plays the life that `seed` chooses. The same each time.
Outcome Simulate(uint64_t seed, Tracing tracing = Tracing::kOff);

// Plays `count` seeds from `first` on, in as many threads as there are cores; returns the first
// life that breaks a promise, with its trace. `seed` gets its number.
Outcome SimulateMany(uint64_t first, uint64_t count, uint64_t* seed);

// A failure, for people: seed, step, the end of the trace, and how to replay it.
std::string Describe(uint64_t seed, const Outcome& outcome, size_t lines_max);

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_SIMULATION_H_
