// Settings of a run of the crash tests, from the environment.
#ifndef H5MIRROR_TESTS_CRASH_SETTINGS_H_
#define H5MIRROR_TESTS_CRASH_SETTINGS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace h5mirror::store {

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Different states of the disk after a power loss that one run of all tests checks. Under
// sanitizers, where each takes several times longer, it is a fifth of them: README.md has the
// figures.
inline constexpr uint64_t kDivisor = H5M_CRASH_DIVISOR;
inline constexpr uint64_t kCrashStates = 20'000;
inline uint64_t CrashStateCount() {
  return FromEnvironment("H5M_CRASH_STATES", kCrashStates) / kDivisor;
}
// The step between the calls of a scenario that fail in turn: 1 means every call.
inline uint64_t CallsStep() {
  const uint64_t states = FromEnvironment("H5M_CRASH_STATES", kCrashStates);
  return std::max<uint64_t>(1, kDivisor * kCrashStates / std::max<uint64_t>(states, 1));
}
// Whether each call fails with all four faults (in a run of many states), or with one.
inline bool HasAllFaults() {
  return FromEnvironment("H5M_CRASH_STATES", kCrashStates) >= 5 * kCrashStates;
}
inline uint64_t FirstSeed() { return FromEnvironment("H5M_SEED", 1); }

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_SETTINGS_H_
