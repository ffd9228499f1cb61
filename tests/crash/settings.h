// What the environment says about a run of the crash tests.
#ifndef H5MIRROR_TESTS_CRASH_SETTINGS_H_
#define H5MIRROR_TESTS_CRASH_SETTINGS_H_

#include <cstdint>
#include <cstdlib>

namespace h5mirror::store {

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Different states of the disk after a power loss that one run of all tests checks.
inline constexpr uint64_t kCrashStates = 20'000;
inline uint64_t CrashStateCount() { return FromEnvironment("H5M_CRASH_STATES", kCrashStates); }
// Of the calls of a scenario every one fails in its turn, or at the default only each of so many.
inline constexpr uint64_t kCallsStep = 1;
inline uint64_t FirstSeed() { return FromEnvironment("H5M_SEED", 1); }

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_SETTINGS_H_
