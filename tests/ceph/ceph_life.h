// One life of a store on CephFS, for tests: a client with a root of its own, whose calls can fail,
// and whose session another client ends.
#ifndef H5MIRROR_TESTS_CEPH_CEPH_LIFE_H_
#define H5MIRROR_TESTS_CEPH_CEPH_LIFE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/testing/failing_env.h"
#include "ceph/ceph_env.h"
#include "tests/crash/promises.h"
#include "tests/crash/scenarios.h"

namespace h5mirror::ceph {

class CephLife {
 public:
  // The root is a new directory, "/" of env().
  static absl::StatusOr<std::unique_ptr<CephLife>> Begin();
  ~CephLife();

  FailingEnv& env() { return env_; }

  // Ends the session once, by its uuid, as a server that takes over does. The client loses all
  // bytes that it has not written back. It first writes back some open files; `seed` chooses them.
  // It hears of the end before this returns, or, if `seed` is odd, by a call of its own.
  void EndSession(uint64_t seed);
  bool has_ended() const { return has_ended_; }

  // Makes libcephfs seem to answer a call with ESHUTDOWN. The session itself goes on.
  void RefuseCalls();

  // Opens the root by another client: all promises must hold, and each file must be usable. No
  // store may be open here. The bits of `choice` select among the checks.
  absl::Status CheckBySuccessor(const store::PlayOptions& options, uint64_t choice,
                                store::Promises* promises);

 private:
  CephLife(std::unique_ptr<MountedEnv> mounted, std::string root)
      : mounted_(std::move(mounted)), root_(std::move(root)), env_(*mounted_, root_) {}

  // Waits until the client has heard of the end, and has dropped the bytes that it had not written
  // back.
  void AwaitNews();
  CephMount& mount() { return static_cast<CephEnv&>(*mounted_).mount(); }

  const std::unique_ptr<MountedEnv> mounted_;
  const std::string root_;
  FailingEnv env_;
  std::atomic<bool> has_ended_{false};
};

// About how many changes a whole play of `scenario` makes: in memory, on a disk that shares no
// blocks, like CephFS.
uint64_t MeasurePlay(const store::Scenario& scenario, uint64_t seed, FailingEnv::Count count);

// Place number `index` of `count` places spread over `all`; `seed` shifts them.
inline uint64_t SpreadPlace(uint64_t all, uint64_t index, uint64_t count, uint64_t seed) {
  return (all * index + seed * 7919 % all) / count;
}

// Where a life ends.
struct Eviction {
  FailingEnv::Count count = FailingEnv::Count::kChanges;
  uint64_t number = 0;
};
struct EvictedLife {
  std::string wrong;         // "": nothing is wrong
  bool was_reached = false;  // the session ended there, not at the end of the play
  uint64_t grow_count = 0;   // of FailingEnv
};
// Plays `scenario`, and ends the session there, or at the end of the play. Then a successor must
// find all that was acked at any time.
EvictedLife PlayEvicted(const store::Scenario& scenario, uint64_t seed, const Eviction& before,
                        const FailingEnv::Lie& lie = nullptr);

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_TESTS_CEPH_CEPH_LIFE_H_
