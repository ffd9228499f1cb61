// Stands before another Env, for tests: counts its calls, and lets them fail or lie on demand. So a
// real file system meets the faults that FaultEnv gives to one in memory.
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
  // The calls with the numbers [first, first + count) fail with `status`, of them those of `calls`;
  // 0 is the first call of all. A write fails after half of its bytes. A sync does nothing, and
  // fails with kInternal. No other call reaches the other Env.
  void FailCalls(uint64_t first, uint64_t count, absl::Status status, Calls calls = Calls::kAll);
  bool fault_met() const;

  // Those that can fail; changes among them; syncs of files among those.
  enum class Count : uint8_t { kCalls, kChanges, kSyncs };
  // Those so far, counted before they are made.
  uint64_t count(Count count) const;
  uint64_t call_count() const { return count(Count::kCalls); }
  size_t change_count() const override { return count(Count::kChanges); }
  // Calls of GrowAhead() so far that gave a file bytes.
  uint64_t grow_count() const;
  // Before number `number` of `count`, from 0 on, its thread calls `hook`, once, with no lock held.
  // Other threads go on meanwhile.
  void Before(Count count, uint64_t number, std::function<void()> hook);

  // Asked before each sync, of a file or a directory, by the name under which it was opened. True:
  // it reports success and does nothing. Set before the first call. Null: no sync lies.
  using Lie = std::function<bool(std::string_view name)>;
  void SetLie(Lie lie);

  // Syncs some of the open files that have unsynced changes, as `seed` chooses: so a file system
  // writes back in its own time.
  void SyncSome(uint64_t seed);

  struct State;  // in the source file

 private:
  Env& env_;
  const std::filesystem::path root_;
  const std::unique_ptr<State> state_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_FAILING_ENV_H_
