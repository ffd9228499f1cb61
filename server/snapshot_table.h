// The cuts that readers have open, held between their calls.
#ifndef H5MIRROR_SERVER_SNAPSHOT_TABLE_H_
#define H5MIRROR_SERVER_SNAPSHOT_TABLE_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// Thread-safe. Calls the store with no lock held.
class SnapshotTable {
 public:
  // A cut expires `keep` after a newer one was seen, whoever has it open.
  SnapshotTable(Clock& clock, absl::Duration keep) : clock_(clock), keep_(keep) {}

  using SnapshotPtr = std::shared_ptr<store::Snapshot>;

  // Opens the newest cut for `reader`, and holds it unless it is a version. kNotFound: there is
  // none yet.
  absl::StatusOr<SnapshotPtr> Open(store::File& file, const std::string& reader);
  // Opens for `reader` the cut that was the newest one at `time`, if somebody has it open. Null:
  // nobody has.
  SnapshotPtr OpenAt(std::string_view name, absl::Time time, const std::string& reader);
  // Holds `snapshot`, of `file`, for `reader`.
  void Hold(store::File& file, const SnapshotPtr& snapshot, const std::string& reader);
  // Null: it is not held.
  SnapshotPtr Find(std::string_view name, store::CutNumber cut);
  void Close(std::string_view name, store::CutNumber cut, const std::string& reader);

  // `cut` of `name` was made: the time of those before begins to run.
  void OnCut(std::string_view name, store::CutNumber cut);
  void OnTimer();
  void Clear();

  // Cuts that are held, and opens of them.
  struct Count {
    size_t cuts = 0;
    size_t readers = 0;
  };
  Count count();

 private:
  struct Entry {
    SnapshotPtr snapshot;
    std::set<std::string> readers;
    absl::Duration until = absl::InfiniteDuration();
    absl::Time followed = absl::InfiniteFuture();  // when a newer one was seen
  };
  using Key = std::pair<std::string, store::CutNumber>;

  Clock& clock_;
  const absl::Duration keep_;
  absl::Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SNAPSHOT_TABLE_H_
