// Wraps another Env, for tests: counts its calls, and makes them fail or lie on demand. So a real
// file system meets the faults that FaultEnv gives to one in memory.
#ifndef H5MIRROR_BASE_TESTING_FAILING_ENV_H_
#define H5MIRROR_BASE_TESTING_FAILING_ENV_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/machine.h"
#include "base/testing/counted_env.h"

namespace h5mirror {

// Thread-safe. Must outlive its trees, files and locks.
class FailingEnv final : public CountedEnv, public KnowsBootTime {
 public:
  // Its "/" is the directory `root` of `env`, which must outlive this.
  FailingEnv(Env& env, std::filesystem::path root);
  ~FailingEnv() override;

  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override;
  absl::Time Now() override { return env_.Now(); }
  std::optional<BootTime> SinceBoot() override;
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override {
    return env_.GroupNumber(group);
  }

  enum class Calls : uint8_t { kAll, kWrites };
  // Makes the calls numbered [first, first + count) fail with `status`, if they are of the kind
  // `calls`; 0 is the first call of all. A write fails after half of its bytes. A sync does
  // nothing, and fails with kInternal. No other failing call reaches the wrapped Env.
  void FailCalls(uint64_t first, uint64_t count, absl::Status status, Calls calls = Calls::kAll);
  bool fault_met() const;

  // kCalls: calls that can fail. kChanges: the changes among them. kSyncs: the syncs of files among
  // the changes.
  enum class Count : uint8_t { kCalls, kChanges, kSyncs };
  // The number so far. A call is counted before it is made.
  uint64_t count(Count count) const;
  uint64_t call_count() const { return count(Count::kCalls); }
  size_t change_count() const override { return count(Count::kChanges); }
  // Calls of GrowAhead() so far that gave a file bytes.
  uint64_t grow_count() const;
  // Just before the call numbered `number` of `count` (from 0 on), its thread calls `hook` once,
  // with no lock held. Other threads go on meanwhile.
  void Before(Count count, uint64_t number, std::function<void()> hook);

  // Called before each sync of a file or a directory, with the name under which that was opened.
  // True: the sync reports success and does nothing. Set it before the first call. Null: no sync
  // lies.
  using Lie = std::function<bool(std::string_view name)>;
  void SetLie(Lie lie);

  // Syncs some of the open files that have unsynced changes; `seed` chooses them. A file system
  // writes back in its own time in the same way.
  void SyncSome(uint64_t seed);

  struct State;  // in the source file

 private:
  Env& env_;
  const std::filesystem::path root_;
  const std::unique_ptr<State> state_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_FAILING_ENV_H_
