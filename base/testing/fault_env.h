// Env's twin for tests: a file system in memory. It fails on demand. It also gives the states that
// a power loss might have left at any moment of its past.
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

// Thread-safe. Has one tree, whatever root is named. Files are kept in memory uncompressed, up to 1
// GiB each: keep them small. Copies made by Crash() are independent.
//
// The model of a power loss. Changes of a file's data and mode survive if its last successful
// Sync() covered them. Of each later change, independently: all, nothing, or any of its 512-byte
// sectors. Names survive up to the last one that a SyncDirectory() covered, and any number after
// it, as NameOrder says. If a failed Sync() should have covered a change, no later Sync() covers
// it.
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

  // The result of SinceBoot(); null: unset. In copies it is unset.
  void SetBootTime(std::function<BootTime()> boot_time);

  // ---- Faults ----
  // Makes the call numbered `call` (counted from call_count() on; 0 is the next) fail once, with
  // `status`. A write fails after half of its bytes. A Sync() loses the changes that it should have
  // covered.
  void FailCall(uint64_t call, absl::Status status) { FailCalls(call, 1, std::move(status)); }
  // The same for `count` calls one after the other.
  void FailCalls(uint64_t call, uint64_t count, absl::Status status);
  // Makes every Open() and List() of a name that contains `part` fail with `status`; OK: none
  // fails.
  void FailOpensOf(std::string part, absl::Status status);
  // False: no file gets an access list.
  void SetAccessLists(bool has_access_lists);
  // The number of calls so far, of all that can fail.
  uint64_t call_count() const;
  bool fault_met() const;
  // The bytes that all files together may hold. A write beyond that fails with kResourceExhausted.
  void SetCapacity(uint64_t bytes);
  // False: free and total bytes are kUnavailable.
  void SetCountsSpace(bool counts_space);
  // True: all files can share blocks. False: none can. Unset: every second file can, and CanShare()
  // says no. Shared bytes do not count as used.
  void SetSharesBlocks(std::optional<bool> shares_blocks);
  // True: behaves as CephFS: GrowAhead() grows the file, and names keep their order. Copies do the
  // same.
  void SetGrowsAhead(bool grows_ahead);
  // True: claims that names keep their order, but loses names as if they did not. Copies do the
  // same.
  void SetLiesAboutNames(bool lies);
  // The result of FileSizes(). Files have at most 1 GiB in any case.
  void SetFileSizes(const FileSizeMax& max);
  // The bytes of all files now.
  uint64_t used_bytes() const;
  // Called before each change, with the present disk, under the tree's lock. True: the disk lies:
  // the call reports success without the change. Null: the disk never lies.
  using Lie = std::function<bool(const FaultDisk& disk, const FaultChange& change)>;
  void SetLie(Lie lie);
  // Called after each read of a file, by the thread that read, with no lock held: a test can let
  // time pass there. Null: none.
  using AfterRead = std::function<void(const std::string& name)>;
  void SetAfterRead(AfterRead after_read);
  // Bit rot: it is not among the changes, and no time of the file shows it. kNotFound, kOutOfRange.
  absl::Status FlipBit(std::string_view name, uint64_t bit);

  // ---- Crashes ----
  // The number of changes so far. Each prefix of the changes is a moment for a crash.
  size_t change_count() const override;
  // A state that a power loss after the first `changes` changes might leave; `seed` chooses one.
  std::unique_ptr<FaultEnv> Crash(size_t changes, uint64_t seed) const;
  std::unique_ptr<FaultEnv> Crash(const CrashPoint& point) const;
  // `point`, made possible for this Env: if names keep their order, no name is lost out of order.
  CrashPoint Possible(const CrashPoint& point) const;
  // The state after a crash of only the process: everything survives.
  std::unique_ptr<FaultEnv> CopyNow() const;

  // Equal for equal names, modes and bytes. Times do not matter.
  uint64_t Fingerprint() const;
  // For people: "write d/x.h5 [0, 512)".
  std::string DescribeChange(size_t number) const;

  struct State;  // the file system's state; in the source file

 private:
  std::shared_ptr<State> state_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_FAULT_ENV_H_
