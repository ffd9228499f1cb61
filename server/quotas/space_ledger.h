// The space that each account of the [[quota]] tables takes: heads, histories and files. A writer
// asks it before a head grows or a file is made; SpaceCounter brings the measured sizes on the
// disk.
#ifndef H5MIRROR_SERVER_QUOTAS_SPACE_LEDGER_H_
#define H5MIRROR_SERVER_QUOTAS_SPACE_LEDGER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/settings/quota_rules.h"

namespace h5mirror::server {

// Of one file or of many, in bytes on the disk.
struct SpaceSizes {
  uint64_t head_bytes = 0;
  uint64_t history_bytes = 0;
  // The following are counted only where they have a limit.
  uint64_t tags = 0;
  uint64_t archived_bytes = 0;  // of segments in the archive; not on the disk
};

// A removed file, which counts to the account that its name lies below.
struct RemovedSpace {
  std::string id;  // of the removal
  std::string name = {};
  absl::Time removed = {};
  uint64_t bytes = 0;  // of head and history, without holes
};

// One account and its limits.
struct SpaceUse {
  std::string directory;  // "" is the root
  SpaceSizes sizes = {};
  uint64_t files = 0;
  QuotaRule rule = {};
  // Beside `files` and `sizes`.
  uint64_t removed_files = 0;
  uint64_t removed_bytes = 0;

  // The largest part of a limit that is taken, in percent; more than 100 where it is exceeded.
  // Removed files are left out: the oldest go by themselves.
  int FullestPercent() const;
};

// Thread-safe. Without tables each call is one read of an atomic.
class SpaceLedger {
 public:
  // Called when an account gets to kNearPercent of a limit, once until it has fallen below again.
  // Without a lock held.
  using NearListener = std::function<void(const SpaceUse&)>;
  static constexpr int kNearPercent = 90;

  explicit SpaceLedger(std::vector<QuotaRule> rules) { SetRules(std::move(rules)); }
  SpaceLedger(const SpaceLedger&) = delete;

  // A file counts by the first rule whose directory it lies below. No limit holds until
  // FinishCount().
  void SetRules(std::vector<QuotaRule> rules);
  // Forgets what was counted in the directory `cell`; "" is the root: other files than before are
  // there. From now on no limit of an account there holds until FinishCount(), and no share of
  // accounts is known. The limits of all others hold.
  void CountAgain(std::string_view cell);
  bool is_on() const { return is_on_; }
  // Before the first call comes.
  void SetNearListener(NearListener listener) { on_near_ = std::move(listener); }

  // ---- Before something is done. OK: it may be. kResourceExhausted names account, use, limit,
  // table and the way out. ----

  // A new file: it counts from now on. OK also for one that counts already.
  absl::Status AddFile(std::string_view name);
  // The head of a file takes `more_bytes` behind its end, which count from now on. `end_bytes`, the
  // size that it would have, is remembered when it is refused; see MayBegin().
  absl::Status Grow(std::string_view name, uint64_t more_bytes, uint64_t end_bytes);
  // Bytes are written before `end_bytes`, the end of the file. They may fill holes. So they are
  // refused if the file has holes and its account is at its limit.
  absl::Status Fill(std::string_view name, uint64_t end_bytes);
  // A writer with a local file of `local_bytes` begins. It is refused if the file was refused
  // before at an end that the local file reaches, and there is still no room: it would only send
  // everything again.
  absl::Status MayBegin(std::string_view name, uint64_t local_bytes);
  // A version of the file gets a tag that none has; it counts from now on.
  absl::Status AddTag(std::string_view name);
  // More of the file's history goes to the archive. Counts nothing, so one call may pass more than
  // the limit allows.
  absl::Status MayArchive(std::string_view name) const;
  // A file of these sizes gets the name: it is moved, undeleted, or its head changes by a rollback.
  // `from`: the file's name until now; empty: none. Counts nothing.
  absl::Status MayHold(std::string_view name, const SpaceSizes& sizes, std::string_view from);

  // ---- The present state ----

  // The file has another name.
  void Moved(std::string_view name, std::string_view new_name);
  // A version of the file has lost a tag, or did not get the one of AddTag().
  void DropTag(std::string_view name);
  // A measurement of the file begins; counts of Grow() and AddTag() from now on may not be in it.
  void BeginMeasure(std::string_view name);
  // Its result; nullopt: there is no such file.
  void Measured(std::string_view name, const std::optional<SpaceSizes>& sizes);
  // A number that SetRules() and CountAgain() change. A count of all files that has begun with
  // another is void.
  uint64_t rules_number() const;
  void FinishCount(uint64_t rules_number);
  // Whether all limits hold.
  bool is_counted() const;

  // ---- Removed files: space_ledger_removed.cc. They refuse nothing. ----

  // The file was removed just now: it counts as a removed one instead.
  void Removed(const RemovedSpace& file);
  // The store lists its removed files from now on; then each that is listed is added, once. One
  // that was dropped since BeginListing() is left out: the list may be older.
  void BeginListing();
  void AddListed(const RemovedSpace& file);
  void EndListing();
  // The removed file was brought back, or is gone for good.
  void DropRemoved(std::string_view id);
  std::vector<std::string> RemovedIds() const;
  // The oldest removed file of an account with more than max_files of them, or where they take more
  // than removed_bytes; never the newest one. `use`: of the account. nullopt: there is none, or the
  // count has not ended.
  struct RemovedBeyond {
    RemovedSpace file;
    SpaceUse use;
  };
  std::optional<RemovedBeyond> OldestRemovedBeyondLimit() const;

  // ---- Questions ----

  // The account of a file whose history has a limit; nullopt: none has, or it is not counted yet.
  std::optional<SpaceUse> HistoryOf(std::string_view name) const;
  // Whether the history of the file's account is larger than the mean of all accounts' (files that
  // no table is for are one account). nullopt: nothing is known, as there are no tables or the
  // count has not ended.
  std::optional<bool> IsOverShare(std::string_view name) const;
  // At most `limit` accounts in order of their directories, from the first behind `after` on.
  std::vector<SpaceUse> List(std::string_view after, size_t limit) const;
  // The account of a file that counts, and has a table.
  std::optional<SpaceUse> AccountOf(std::string_view name) const;
  // Whether the tags of the file have a limit.
  bool LimitsTags(std::string_view name) const;
  // True: the bytes that the file has in the archive have a limit.
  bool LimitsArchived(std::string_view name) const;
  // The space of a file's head; 0: it does not count.
  uint64_t HeadOf(std::string_view name) const;

 private:
  // Where a file counts to.
  struct Place {
    std::string key;  // of `accounts_`
    std::string directory;
    const QuotaRule* rule = nullptr;  // nullptr: no table is for it
  };
  struct Account {
    Place place;
    SpaceSizes sizes = {};
    uint64_t files = 0;
    bool is_near = false;
    std::map<std::pair<absl::Time, std::string>, RemovedSpace> removed = {};  // oldest first
    uint64_t removed_bytes = 0;
  };
  // Of one removed file, named by its id.
  struct RemovedEntry {
    absl::Time removed = {};
    Account* account = nullptr;
  };
  // Of one file; named by a hash, as there may be millions.
  struct Entry {
    SpaceSizes sizes = {};
    uint64_t grown_bytes = 0;  // since BeginMeasure()
    uint64_t grown_tags = 0;   // likewise
    Account* account = nullptr;
  };
  // The last growth of a file that was refused.
  struct Refusal {
    uint64_t head_bytes = 0;  // the space that the head would have taken
    uint64_t end_bytes = 0;   // and where it would have ended
  };

  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the accounts within `cell` or around it, and that of the files without a table, which
  // do not say where they lie.
  void Forget(std::string_view cell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the account has a table, and all of its files are counted.
  bool Holds(const Place& place) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Place PlaceOf(std::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Without files, where it has none.
  const Account& AccountAt(const Place& place) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // nullptr: the file does not count.
  const Entry* Find(std::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Entry& EntryFor(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Account& MakeAccount(Place place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the account if nothing counts to it.
  void DropIfEmpty(const Account& account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddRemoved(const RemovedSpace& file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetSizes(Entry& entry, const SpaceSizes& sizes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the account, with the rule that its place has.
  static SpaceUse UseOf(const Account& account, const Place& place);
  static SpaceUse UseOf(const Account& account) { return UseOf(account, account.place); }
  // Set: `on_near_` is to be told.
  std::optional<SpaceUse> NearNews(Account& account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> is_on_{false};
  NearListener on_near_;
  mutable absl::Mutex mutex_;
  std::vector<QuotaRule> rules_ ABSL_GUARDED_BY(mutex_);
  uint64_t rules_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_counted_ ABSL_GUARDED_BY(mutex_) = false;                     // except the cells in
                                                                        // `uncounted_`
  absl::flat_hash_set<std::string> uncounted_ ABSL_GUARDED_BY(mutex_);  // cells
  uint64_t history_bytes_ ABSL_GUARDED_BY(mutex_) = 0;                  // of all accounts
  uint64_t with_history_ ABSL_GUARDED_BY(mutex_) = 0;                   // accounts that have some
  absl::flat_hash_map<std::string, std::unique_ptr<Account>> accounts_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // Of accounts with a table only; by the removal's id.
  absl::flat_hash_map<std::string, RemovedEntry> removed_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<const Account*> with_removed_ ABSL_GUARDED_BY(mutex_);
  bool is_listing_ ABSL_GUARDED_BY(mutex_) = false;
  // Ids of removed files, while they are listed.
  absl::flat_hash_set<std::string> gone_since_listing_ ABSL_GUARDED_BY(mutex_);
  // Also of files that never got a cut. Bounded: with more, all are forgotten.
  absl::flat_hash_map<uint64_t, Refusal> refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_QUOTAS_SPACE_LEDGER_H_
