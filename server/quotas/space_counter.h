// Measures the files of a store for a SpaceLedger: all of them once, then those that change.
#ifndef H5MIRROR_SERVER_QUOTAS_SPACE_COUNTER_H_
#define H5MIRROR_SERVER_QUOTAS_SPACE_COUNTER_H_

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "onion_store/store.h"
#include "server/quotas/space_ledger.h"

namespace h5mirror::server {

// Thread-safe but for Round().
class SpaceCounter {
 public:
  // Both must outlive this.
  SpaceCounter(SpaceLedger& ledger, store::Store& store) : ledger_(ledger), store_(store) {}
  ~SpaceCounter() { Stop(); }
  SpaceCounter(const SpaceCounter&) = delete;

  // Starts the thread.
  void Start();
  void Stop();

  // The file has changed on the disk, came or went. Cheap; without tables nothing.
  void Changed(std::string_view name);
  // Removed files have expired and are gone: lists the remaining ones again.
  void RemovedExpired() { list_removed_ = true; }
  // One round of the thread: the count of all files where it is due, then those that changed. Then
  // removed files beyond the limits of their account go for good. The thread makes one a second, or
  // fewer where files take long. For tests, instead of Start().
  void Round();
  // Measures the file at once, with its tags and what it has in the archive where they have a
  // limit. Where its cell has no server at the moment, a later round does.
  void Measure(const std::string& name);
  const SpaceLedger& ledger() const { return ledger_; }

 private:
  bool stopping() const;
  void CountAll(uint64_t rules_number);
  void CountChanged();
  // OK: the file counts with its measured or its former sizes. kUnavailable: this server of a
  // cluster may not answer for it.
  absl::Status TryMeasure(const std::string& name);
  // Lists the removed files if a listing is due. An error: the listing failed, and is due again.
  absl::Status ListRemoved();
  void PurgeRemoved();
  bool TimeIsInDoubt();
  // The tags of the file, and what it has in the archive, where they have a limit, else 0.
  absl::StatusOr<uint64_t> CountTags(const std::string& name);
  absl::StatusOr<uint64_t> CountArchived(const std::string& name);

  SpaceLedger& ledger_;
  store::Store& store_;
  uint64_t counted_rules_ = 0;  // of the thread
  // Of the thread, after one that could not be deleted or listed: the monotonic time of the next
  // listing.
  absl::Duration list_again_ = absl::InfiniteDuration();
  std::atomic<bool> list_removed_{false};
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<std::string> changed_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The count of a removed file.
RemovedSpace SpaceOf(const store::RemovedFile& removed);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_QUOTAS_SPACE_COUNTER_H_
