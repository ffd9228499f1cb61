// Moves saved pages of old versions to the archive, by the rules of the configuration and when an
// operator orders it. For operators: docs/how-to/archive-history.md.
#ifndef H5MIRROR_SERVER_HISTORY_ARCHIVE_KEEPER_H_
#define H5MIRROR_SERVER_HISTORY_ARCHIVE_KEEPER_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "archive/root_archive.h"
#include "base/clock.h"
#include "onion_store/store.h"
#include "server/notify/event.h"
#include "server/quotas/space_counter.h"
#include "server/settings/config.h"

namespace h5mirror::server {

// One file that an operator wants archived now. Thread-safe.
class ArchiveOrder {
 public:
  struct State {
    bool started = false;
    bool done = false;
    absl::Status status;  // once it is done
    store::ArchiveProgress progress;
  };

  ArchiveOrder(std::string name, uint64_t keep_bytes)
      : name_(std::move(name)), keep_bytes_(keep_bytes) {}

  const std::string& name() const { return name_; }
  uint64_t keep_bytes() const { return keep_bytes_; }
  State Look() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The work ends between two steps.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- of the keeper ----
  bool is_given_up() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(const store::ArchiveProgress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string name_;
  const uint64_t keep_bytes_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  bool is_given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

// What the keeper has done since the start, and when it goes on.
struct ArchiveCounts {
  int64_t segments_archived = 0;
  uint64_t archived_bytes = 0;
  uint64_t freed_bytes = 0;
  absl::Time next_pass = absl::InfiniteFuture();
};

// Thread-safe but for Round(). Waits for the archive in its own thread alone, without a lock.
class ArchiveKeeper {
 public:
  // The referenced objects must outlive this. Without an `archive` it does nothing. `counter` may
  // be null: nobody counts what takes space on the disk. `events` may be null: nobody is told.
  ArchiveKeeper(const Config& config, store::Store& store, archive::RootArchive* archive,
                Clock& clock, SpaceCounter* counter, EventSink* events = nullptr);
  ~ArchiveKeeper();
  ArchiveKeeper(const ArchiveKeeper&) = delete;

  void Start();
  // Breaks off calls of the archive, also those of readers. Orders end with kUnavailable.
  void BeginStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the thread. kDeadlineExceeded: it hangs in a directory that does not answer.
  absl::Status AwaitEnd(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  archive::RootArchive* archive() const { return archive_; }
  ArchiveCounts Counts() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Orders are filled one after the other, before further files that the rules name.
  // kFailedPrecondition: there is no archive. kUnavailable: the server stops. kResourceExhausted:
  // too many orders wait.
  absl::StatusOr<std::shared_ptr<ArchiveOrder>> Order(const std::string& name, uint64_t keep_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // One round of the thread. For tests, instead of Start().
  void Round();

 private:
  // What is wrong with the archive. A part that is another root's says nothing of the others: so
  // that calls of all parts fail is told of, too, while a part has a fault.
  enum class Trouble : uint8_t { kNone, kPart, kRefused, kAway };

  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<ArchiveOrder> FirstOrder() ABSL_LOCKS_EXCLUDED(mutex_);
  void FillOrders();
  absl::Status Fill(ArchiveOrder& order);
  // False: the archive cannot be used now.
  bool Probe();
  // A directory on the root's own disk may be one on which nothing is mounted.
  void WarnOfOneDisk() const;
  void TryLater() ABSL_LOCKS_EXCLUDED(mutex_);
  // One pass over all files, from where the last one was broken off.
  void RunPass();
  // False: the pass ends here.
  bool TendAll(absl::Span<const store::FileSummary> files, bool is_time_sure);
  absl::Status Tend(const std::string& name, bool is_time_sure);
  // Whether a file has had no new version for so long that all its history goes.
  bool IsAtRest(const store::FileInfo& info, bool is_time_sure);
  // As SpaceLedger::MayArchive().
  absl::Status MayArchive(const std::string& name) const;
  absl::Status Run(const std::string& name, const store::ArchiveRequest& request,
                   absl::FunctionRef<absl::Status(const store::ArchiveProgress&)> after_step);
  void Count(const store::ArchiveProgress& progress, store::ArchiveProgress& counted)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True: the file's cell is another server's by now, or is about to be.
  bool IsGivenAway(const std::string& name) const;
  // True: `status`, of archiving a file, says that other files would fare no better now.
  bool IsAway(const absl::Status& status) const;
  void PassAgainIn(absl::Duration wait) ABSL_LOCKS_EXCLUDED(mutex_);
  // Logs each time that the archive goes away, and comes back. Receivers of events are told once
  // the thread waits before it tries again: a call that failed once is none.
  void TellStanding();
  void TellReceivers(const archive::ArchiveStanding& standing, Trouble trouble);
  Trouble TroubleOf(const archive::ArchiveStanding& standing) const;

  const std::filesystem::path root_;
  const absl::Duration after_;
  const uint64_t local_bytes_;
  const absl::Duration every_;
  const store::ArchiveCopy copies_;
  store::Store& store_;
  archive::RootArchive* const archive_;  // null: there is none
  Clock& clock_;
  SpaceCounter* const counter_;  // null: nobody counts
  EventSink* const events_;      // null: nobody is told

  // The thread's own.
  std::string passed_;  // the last file that this pass has looked at; empty: it begins anew
  absl::Duration next_pass_;
  absl::Duration retry_;
  bool is_known_ = false;  // it was asked once
  bool all_well_ = true;   // each file that this pass has looked at was archived as it should be
  Trouble logged_ = Trouble::kNone;
  Trouble waits_for_ = Trouble::kNone;  // why the thread waits, since the archive was well
  Trouble told_ = Trouble::kNone;       // to receivers

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;  // the thread
  std::deque<std::shared_ptr<ArchiveOrder>> orders_ ABSL_GUARDED_BY(mutex_);
  ArchiveCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HISTORY_ARCHIVE_KEEPER_H_
