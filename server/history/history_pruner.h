// Keeps histories within the limits of the configuration: prunes by rule, thins a history at a
// limit, stops one that thinning does not help, and deletes removed files that have expired. For
// operators: docs/reference/retention.md.
#ifndef H5MIRROR_SERVER_HISTORY_HISTORY_PRUNER_H_
#define H5MIRROR_SERVER_HISTORY_HISTORY_PRUNER_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "onion_store/store.h"
#include "onion_store/store_health.h"
#include "server/history/thinning.h"
#include "server/metrics/metrics.h"
#include "server/notify/event.h"
#include "server/quotas/space_quotas.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// Thread-safe but for Round().
class HistoryPruner {
 public:
  // The referenced objects must outlive this. `quotas` may be nullptr: no account has a limit.
  // `events` hears of a disk that is low, of histories that stop and of damage that the store has
  // found; nullptr: nobody does.
  HistoryPruner(const Config& config, store::Store& store, Clock& clock, Metrics& metrics,
                SpaceQuotas* quotas, EventSink* events = nullptr);
  ~HistoryPruner() { Stop(); }
  HistoryPruner(const HistoryPruner&) = delete;

  // Looks at the disk once, so that a disk that is too full is known before the first write. Then
  // starts the thread.
  void Start();
  // Ends the thread between two steps of its work.
  void Stop();

  // The history of a file may have grown. Cheap; called for every durable cut.
  void Grew(const std::string& name);
  // A notice for people: why versions of the file are dropped early, or why none are made. Empty:
  // neither is so.
  std::string NoticeOf(const std::string& name) const;

  // One round of the thread, which makes one a second. For tests, instead of Start().
  void Round();

 private:
  // A file over its limit, whose history was stopped.
  struct Stopped {
    std::string notice;
    absl::Duration retry;  // when thinning is tried again
  };
  // A file that lost versions early.
  struct Thinning {
    std::string notice;
    absl::Time time;
  };

  absl::Status Pause();
  bool stopping() const;
  // The work that cannot wait for the end of a long prune by rule.
  void RunUrgent();

  // Once after a start: brings the times of the last comparisons with local files into the metrics.
  void NoteChecks();

  // ---- By rule ----
  void RunPass();
  absl::Status Tend(const std::string& name, const RetentionRule& rule);
  absl::Status PruneByRule(store::File& file, const RetentionRule& rule);
  void FinishPrunes();
  void PurgeRemoved();

  // ---- history_max_bytes, and history_bytes of an account ----
  void CheckGrown();
  absl::Status CheckLimits(const std::string& name);
  absl::Status CheckLimit(const std::string& name, const RetentionRule& rule);
  absl::Status ThinToLimit(const std::string& name, const RetentionRule& rule);
  void StopFile(const std::string& name, std::string notice);
  // The history is stopped and cannot be thinned now: sets the time of the next attempt.
  void TryLater(const std::string& name);
  void ResumeFile(const std::string& name);
  bool is_stopped(const std::string& name) const;

  // ---- history_bytes of an account; see account_limits.cc ----
  // False: the file's account is over its limit, and the file is stopped.
  absl::StatusOr<bool> CheckAccount(const std::string& name);
  // Thins histories of the account. False: it stays over its limit, and nothing was dropped.
  absl::StatusOr<bool> ThinAccount(const SpaceUse& use, const std::string& why);
  // How much dropping all versions without a tag of `names` would give back, or at least `enough`.
  absl::StatusOr<uint64_t> EstimateAll(absl::Span<const std::string> names, uint64_t enough);

  // ---- min_free ----
  // The store's disk, in bytes.
  struct Disk {
    uint64_t free_bytes;
    uint64_t min_free_bytes;
    // The free bytes at which thinning ends, and stopped histories go on.
    uint64_t goal_bytes() const;
  };
  // Unset: there is no min_free, or the free space is unknown.
  std::optional<Disk> LookAtDisk();
  void StopWhereLow();
  void CheckDisk();
  // Tells once each time that the free space falls below min_free.
  void TellIfLow(const Disk& disk);
  // Thins histories. Returns the bytes given back.
  uint64_t ThinForSpace();
  bool all_stopped() const;
  void StopAll(const Disk& disk, std::string_view why);
  void ResumeAll(const Disk& disk);
  // The files with most history that may be thinned, the largest first: of those below `directory`
  // that `is_meant` takes, at most `count`. `*sum_bytes`: the history of them all, also of those
  // that may not be thinned.
  std::vector<std::string> LargestHistories(
      const std::string& directory, size_t count,
      absl::FunctionRef<bool(const std::string& name)> is_meant, uint64_t* sum_bytes);
  absl::StatusOr<Thinned> Thin(const std::string& name, const ThinRequest& request,
                               std::string_view reason);

  void TellDamage(const std::vector<store::StoreNotice>& notices);
  void NoteThinned(const std::string& name, int64_t versions, std::string_view why);
  void Report(const std::string& name, const absl::Status& status);
  absl::Duration Now() { return clock_.Monotonic(); }

  const std::vector<RetentionRule> rules_;
  const absl::Duration prune_every_;
  const MinFree min_free_;
  store::Store& store_;
  Clock& clock_;
  Metrics& metrics_;
  SpaceQuotas* const quotas_;
  EventSink* const events_;

  // An account over its limit that thinning did not help.
  struct FullAccount {
    std::string notice;
    absl::Duration retry;
  };

  // The thread's own.
  std::map<std::string, FullAccount> full_accounts_;  // by directory and table
  absl::Duration next_hourly_;
  absl::Duration next_pass_;
  absl::Duration next_thinning_;  // for space
  absl::Duration last_urgent_;
  bool in_urgent_ = false;
  bool is_low_ = false;  // it was told that free space is below min_free, and all is not well again
  bool checks_noted_ = false;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, absl::Duration> grown_
      ABSL_GUARDED_BY(mutex_);  // until when to look at them
  absl::flat_hash_map<std::string, Stopped> stopped_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Thinning> thinned_ ABSL_GUARDED_BY(mutex_);
  std::string all_stopped_ ABSL_GUARDED_BY(mutex_);  // the notice; empty: they are not
  std::thread thread_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HISTORY_HISTORY_PRUNER_H_
