// One play of a scenario during which calls fail: on the disk in memory (failing_calls_test.cc),
// and on CephFS (tests/ceph/failing_calls_ceph_test.cc).
#ifndef H5MIRROR_TESTS_CRASH_FAILING_PLAY_H_
#define H5MIRROR_TESTS_CRASH_FAILING_PLAY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/testing/counted_env.h"
#include "tests/crash/promises.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::store {

inline constexpr char kIoError[] = "Input/output error";
inline constexpr char kNoSpace[] = "No space left on device";

struct FailingPlay {
  uint64_t seed = 1;
  uint64_t choice = 0;  // as CheckStore()'s
  absl::Duration patience;
  // Makes the disk work again.
  absl::FunctionRef<void()> lift;
  // The text of an error that the fault explains, beside kIoError and kNoSpace.
  const char* reason = kIoError;
  // The store that met the fault is not checked.
  bool is_for_good = false;
};

// The result of a play, with its store closed.
struct PlayEnd {
  Promises promised;
  std::string wrong;  // "": nothing
};

// Plays `scenario` on `env`, whose calls fail. Then the disk works again, and the same store is
// checked, unless it waits to retry a full disk.
PlayEnd PlayOnFailing(CountedEnv& env, const Scenario& scenario, const FailingPlay& play);

// Whether the error that a step met tells people about `reason`, or about a file.
bool TellsWhy(const absl::Status& status, const char* reason);

// Calls `play(i)` for each i below `count`, `at_once` of them at a time, until one returns a
// violation. Returns that; "": none.
std::string PlayAll(uint64_t count, int at_once, const std::function<std::string(uint64_t)>& play);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_FAILING_PLAY_H_
