// The cuts that readers have open. They stay pinned between the calls of a reader.
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
  // A cut expires `keep` after a newer one was seen, also if readers have it open.
  SnapshotTable(Clock& clock, absl::Duration keep) : clock_(clock), keep_(keep) {}

  using SnapshotPtr = std::shared_ptr<store::Snapshot>;
  // A cut and its file: another file that takes the name reaches the same numbers.
  struct Pinned {
    SnapshotPtr snapshot;
    store::FileId file_id{};
  };

  // Opens the newest cut for `reader`, and pins it unless it is a version. kNotFound: there is no
  // cut yet.
  absl::StatusOr<SnapshotPtr> Open(store::File& file, const std::string& reader);
  // Opens for `reader` the cut of the file `file_id` that was the newest one at `time`, if a reader
  // has it open. Unset: none has.
  std::optional<Pinned> OpenAt(std::string_view name, const store::FileId& file_id, absl::Time time,
                               const std::string& reader);
  // Pins `snapshot`, of `file`, for `reader`.
  void Pin(store::File& file, const SnapshotPtr& snapshot, const std::string& reader);
  // Pins while a call is in flight, and for `keep` after its end. A reader may have several calls
  // at once: one's connection may have broken without the server's notice.
  using CallId = uint64_t;
  CallId NewCall();
  void PinInCall(store::File& file, const SnapshotPtr& snapshot, const std::string& reader,
                 CallId call);
  void EndCall(std::string_view name, CallId call);
  // The pinned cut. Unset: it is not pinned, or is not of the file `file_id` (16 bytes; empty:
  // any). Pins it for `reader` too, for `keep` after the reader's last call. An empty `reader` only
  // looks.
  std::optional<Pinned> Find(std::string_view name, store::CutNumber cut, std::string_view file_id,
                             const std::string& reader);
  void Close(std::string_view name, store::CutNumber cut, const std::string& reader);

  // `cut` of `name` was made: from now on older cuts may expire.
  void OnCut(std::string_view name, store::CutNumber cut);
  void OnTimer();
  void Clear();

  // The numbers of pinned cuts, and of their opens.
  struct Count {
    size_t cuts = 0;
    size_t readers = 0;
  };
  Count count();

 private:
  struct Reader {
    bool HasCall(CallId call) const;
    absl::InlinedVector<CallId, 1> calls;             // the calls that hold the cut
    absl::Duration until = absl::InfiniteDuration();  // without a call: when it is dropped
  };
  struct Entry {
    store::FileId file_id{};
    SnapshotPtr snapshot;
    std::map<std::string, Reader> readers;
    // No reader is to be dropped before.
    absl::Duration first_until = absl::InfiniteDuration();
    absl::Duration until = absl::InfiniteDuration();
    absl::Time followed = absl::InfiniteFuture();  // when a newer one was seen

    void DropReaders(absl::Duration now);  // those whose time has passed
  };
  using Key = std::pair<std::string, store::CutNumber>;

  // The cuts that a call holds. A call that follows one file holds few, of the last `keep`.
  struct Call {
    std::string reader;
    std::deque<store::CutNumber> cuts;  // some may no longer be pinned
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
