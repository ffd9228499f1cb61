// Env's twin for tests: a file system in memory. It fails on demand, and gives the states that a
// power loss might have left at any moment of its past.
#ifndef H5MIRROR_BASE_TESTING_FAULT_ENV_H_
#define H5MIRROR_BASE_TESTING_FAULT_ENV_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/machine.h"
#include "base/testing/counted_env.h"
#include "base/testing/fault_disk.h"

namespace h5mirror {

// Thread-safe. Has one tree, whatever root is named. Files lie in memory as they are, up to 1 GiB
// each: keep them small. Copies made by Crash() are independent.
//
// The model of a power loss. Of a file's data and mode, the changes that its last successful Sync()
// covered survive; of each later one, independently: all, nothing, or any of its 512-byte sectors.
// Names survive up to the last that a SyncDirectory() covered, and any number of those after it, as
// NameOrder says. A change that a failed Sync() should have covered is covered by no later one.
class FaultEnv final : public CountedEnv, public KnowsBootTime {
 public:
  FaultEnv();
  ~FaultEnv() override;

  absl::StatusOr<std::unique_ptr<EnvTree>> OpenTree(const std::filesystem::path& root) override;
  absl::Time Now() override;
  std::optional<BootTime> SinceBoot() override;
  absl::StatusOr<int64_t> GroupNumber(const std::string& group) override;

  // The time of day; null: the machine's. Copies begin with the machine's.
  void SetTime(std::function<absl::Time()> now);

  // The result of SinceBoot(); null: unset. Copies begin without it.
  void SetBootTime(std::function<BootTime()> boot_time);

  // ---- Faults ----
  // The call number `call` (from call_count() on, 0 is the next) fails once, with `status`: a write
  // after half of its bytes; a Sync() loses the changes that it should have covered.
  void FailCall(uint64_t call, absl::Status status) { FailCalls(call, 1, std::move(status)); }
  // The same for `count` calls one after the other.
  void FailCalls(uint64_t call, uint64_t count, absl::Status status);
  // Every Open() and List() of a name with `part` in it fails with `status`; OK: none does.
  void FailOpensOf(std::string part, absl::Status status);
  // False: no file gets an access list.
  void SetAccessLists(bool has_access_lists);
  // Calls made so far, all that can fail.
  uint64_t call_count() const;
  bool fault_met() const;
  // Bytes that files may hold together; writes beyond fail with kResourceExhausted.
  void SetCapacity(uint64_t bytes);
  // False: free and total bytes are kUnavailable.
  void SetCountsSpace(bool counts_space);
  // Whether all files can share blocks, or none can; unset: every second one can, and CanShare()
  // says no. Bytes that a file has shared do not count.
  void SetSharesBlocks(std::optional<bool> shares_blocks);
  // Whether it is as CephFS: GrowAhead() does it, and names keep their order. Copies likewise.
  void SetGrowsAhead(bool grows_ahead);
  // True: it says that names keep their order, and loses them as if they did not. Copies likewise.
  void SetLiesAboutNames(bool lies);
  // The result of FileSizes(). Files have at most 1 GiB in any case.
  void SetFileSizes(const FileSizeMax& max);
  // The bytes of all files now.
  uint64_t used_bytes() const;
  // Called before each change, with the present disk, under the tree's lock. True: the disk lies,
  // and the call reports success without the change. Null: the disk does not lie.
  using Lie = std::function<bool(const FaultDisk& disk, const FaultChange& change)>;
  void SetLie(Lie lie);
  // Called after each read of a file, by the thread that read, with no lock held: a test can let
  // time pass there. Null: none.
  using AfterRead = std::function<void(const std::string& name)>;
  void SetAfterRead(AfterRead after_read);
  // Rot: no change, and no time of the file shows it. kNotFound, kOutOfRange.
  absl::Status FlipBit(std::string_view name, uint64_t bit);

  // ---- Crashes ----
  // Each prefix of the changes is a moment.
  size_t change_count() const override;
  // A state that a power loss after the first `changes` changes might leave; `seed` chooses one.
  std::unique_ptr<FaultEnv> Crash(size_t changes, uint64_t seed) const;
  std::unique_ptr<FaultEnv> Crash(const CrashPoint& point) const;
  // `point` as Crash() takes it: where names keep their order, none is lost without it.
  CrashPoint Possible(const CrashPoint& point) const;
  // The state after a crash of the process alone: everything survives.
  std::unique_ptr<FaultEnv> CopyNow() const;

  // Equal for equal names, modes and bytes. Times do not matter.
  uint64_t Fingerprint() const;
  // For people: "write d/x.h5 [0, 512)".
  std::string DescribeChange(size_t number) const;

  struct State;  // of the file system; in the source file

 private:
  std::shared_ptr<State> state_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_FAULT_ENV_H_
