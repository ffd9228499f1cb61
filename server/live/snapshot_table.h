// The cuts that readers have open, held between their calls.
#ifndef H5MIRROR_SERVER_LIVE_SNAPSHOT_TABLE_H_
#define H5MIRROR_SERVER_LIVE_SNAPSHOT_TABLE_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
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
  // A cut and the file that it is of: another one that takes the name reaches the same numbers.
  struct Pinned {
    SnapshotPtr snapshot;
    store::FileId file_id{};
  };

  // Opens the newest cut for `reader`, and holds it unless it is a version. kNotFound: there is
  // none yet.
  absl::StatusOr<SnapshotPtr> Open(store::File& file, const std::string& reader);
  // Opens for `reader` the cut that was the newest one at `time`, if somebody has it open. Nothing:
  // nobody has.
  std::optional<Pinned> OpenAt(std::string_view name, absl::Time time, const std::string& reader);
  // Holds `snapshot`, of `file`, for `reader`.
  void Pin(store::File& file, const SnapshotPtr& snapshot, const std::string& reader);
  // The same as long as a call is under way, and for `keep` after its end. A reader may have
  // several at once, as when the connection of one broke and the server has not noticed.
  using CallId = uint64_t;
  CallId NewCall();
  void PinInCall(store::File& file, const SnapshotPtr& snapshot, const std::string& reader,
                 CallId call);
  void EndCall(std::string_view name, CallId call);
  // Nothing: it is not held, or of another file than `file_id` (16 bytes; empty: whichever it is).
  // A reader that does not hold it does so from now on, for `keep` after the last call; an empty
  // one only looks.
  std::optional<Pinned> Find(std::string_view name, store::CutNumber cut, std::string_view file_id,
                             const std::string& reader);
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
  struct Reader {
    bool HasCall(CallId call) const;
    absl::InlinedVector<CallId, 1> calls;             // that hold it for him,
    absl::Duration until = absl::InfiniteDuration();  // and without any: so long
  };
  struct Entry {
    store::FileId file_id{};
    SnapshotPtr snapshot;
    std::map<std::string, Reader> readers;
    // None of the readers goes by himself before.
    absl::Duration first_until = absl::InfiniteDuration();
    absl::Duration until = absl::InfiniteDuration();
    absl::Time followed = absl::InfiniteFuture();  // when a newer one was seen

    void DropReaders(absl::Duration now);  // whose time has passed
  };
  using Key = std::pair<std::string, store::CutNumber>;

  // What a call holds: as long as it follows one file these are few, or of the last `keep`.
  struct Call {
    std::string reader;
    std::deque<store::CutNumber> cuts;  // some may be held no more
  };

  void Put(store::File& file, const SnapshotPtr& snapshot, const std::string& reader,
           std::optional<CallId> call);
  void NoteCall(const std::string& name, store::CutNumber cut, const std::string& reader,
                CallId call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void LetGoAt(absl::Duration until, Reader& reader, Entry& entry);

  Clock& clock_;
  const absl::Duration keep_;
  absl::Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<CallId, Call> calls_ ABSL_GUARDED_BY(mutex_);
  CallId last_call_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_SNAPSHOT_TABLE_H_
