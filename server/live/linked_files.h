// Target files, to which other files lead by external links or virtual datasets. Their cuts are
// pinned for a while, also without a reader: a reader that opens a target wants the cut of the
// moment at which it opened the first file.
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
#include "server/calls/fair_pool.h"
#include "server/live/snapshot_table.h"

namespace h5mirror::server {

// The server learns of a target when a reader opens it as one. Thread-safe.
class LinkedFiles {
 public:
  // How long a file counts as a target after it was last opened as one.
  static constexpr absl::Duration kRemember = absl::Hours(1);
  static constexpr size_t kFilesMax = 4096;
  // The most pins of one file; the newest stay. The table ends a pin when its time is over.
  static constexpr size_t kCutsMax = 64;
  static constexpr absl::Duration kSettleMax = absl::Milliseconds(200);

  using OpenFile = std::function<absl::StatusOr<std::shared_ptr<store::File>>(const std::string&)>;

  LinkedFiles(Clock& clock, SnapshotTable& table, OpenFile open_file)
      : clock_(clock), table_(table), open_file_(std::move(open_file)) {}

  // A reader has opened `name` as a target.
  void Note(const std::string& name);
  // Costs one look-up if the file is no target. Does not wait.
  void OnCut(const std::string& name);
  // Waits until the cuts that were made before are pinned, at most kSettleMax.
  void Settle();
  void OnTimer();
  // Ends all pins, and makes no more.
  void Stop();

 private:
  struct Entry {
    absl::Duration until;
    std::deque<store::CutNumber> cuts;  // pinned, oldest first
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
  // Numbers of tasks, which are done in their order.
  uint64_t scheduled_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // One thread: a pin takes microseconds, and pins come in the order of the cuts.
  WorkerPool worker_{1, "linked files"};
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_LINKED_FILES_H_
