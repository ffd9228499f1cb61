// Files that others lead to by external links or virtual datasets: their cuts stay held for a
// while, whoever has them open, as a reader who opens one of them wants it as of the moment at
// which he opened the file that led there.
#ifndef H5MIRROR_SERVER_LIVE_LINKED_FILES_H_
#define H5MIRROR_SERVER_LIVE_LINKED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "onion_store/file.h"
#include "server/calls/worker_pool.h"
#include "server/live/snapshot_table.h"

namespace h5mirror::server {

// Which files are led to the server learns from those who open them so. Thread-safe.
class LinkedFiles {
 public:
  // How long after it was last opened so a file counts as led to.
  static constexpr absl::Duration kRemember = absl::Hours(1);
  static constexpr size_t kFilesMax = 4096;
  // Of one file, the newest ones; the table lets go of them when their time is over.
  static constexpr size_t kCutsMax = 64;
  static constexpr absl::Duration kSettleMax = absl::Milliseconds(200);

  using OpenFile = std::function<absl::StatusOr<std::shared_ptr<store::File>>(const std::string&)>;

  LinkedFiles(Clock& clock, SnapshotTable& table, OpenFile open_file)
      : clock_(clock), table_(table), open_file_(std::move(open_file)) {}

  // Somebody was led to `name`.
  void Note(const std::string& name);
  // Costs a look-up for a file that nobody is led to. Does not wait.
  void OnCut(const std::string& name);
  // Waits until the cuts that were made before are held, or for kSettleMax.
  void Settle();
  void OnTimer();
  // Nothing is held from here on.
  void Stop();

 private:
  struct Entry {
    absl::Duration until;
    std::deque<store::CutNumber> cuts;  // held, oldest first
    bool is_scheduled = false;
  };

  void PinSoon(const std::string& name, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PinNewest(const std::string& name);
  void Pinned(const std::string& name, store::CutNumber cut);

  Clock& clock_;
  SnapshotTable& table_;
  const OpenFile open_file_;
  absl::Mutex mutex_;
  std::map<std::string, Entry> files_ ABSL_GUARDED_BY(mutex_);
  // Tasks, which are done in their order.
  uint64_t scheduled_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // One: holding a cut takes microseconds, and comes in the order of the cuts.
  WorkerPool worker_{1, "linked files"};
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_LINKED_FILES_H_
