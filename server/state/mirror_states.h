// The state of each file's mirror: how the file stands to its local file, by the reports and the
// ends of writers. After a restart writers report anew. States without a writer, DEGRADED and
// DIVERGED, come from a file (docs/reference/format.md, "Mirror states").
#ifndef H5MIRROR_SERVER_STATE_MIRROR_STATES_H_
#define H5MIRROR_SERVER_STATE_MIRROR_STATES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/hex.h"
#include "h5mirror/v1/types.pb.h"
#include "onion_store/types.h"

namespace h5mirror::server {

// Bounds on a writer's report. kInvalidArgument names the field.
absl::Status CheckMirrorStatus(const v1::MirrorStatus& status);

// Figures of all files that are not in sync. Each lag is that of the file that lags most.
struct MirrorSummary {
  std::map<v1::MirrorState, size_t> files;
  int64_t lag_cuts = 0;
  int64_t lag_bytes = 0;
  absl::Duration lag = absl::ZeroDuration();
};

// Thread-safe. Logs each change of a file's state once.
class MirrorStates {
 public:
  // `clock` must outlive this. Beyond `files_max` files without a writer, some are forgotten.
  explicit MirrorStates(Clock& clock, size_t files_max = 65536)
      : clock_(clock), files_max_(files_max) {}

  // A session has begun, under the token `token`.
  void Connected(const std::string& name, const Bytes16& file_id, store::Token token);
  // The writer's report. Only CONNECTED and RESYNCING count; the other states are the server's.
  void Reported(const std::string& name, const Bytes16& file_id, store::Token token,
                const v1::MirrorStatus& status);
  // The session has ended in order. Does nothing if another has begun since.
  void Ended(const Bytes16& file_id, store::Token token);
  // The session has ended, and the local file may hold more than has arrived, as `why` says.
  // `info`: of the file after the end. Does nothing, and returns false, if another session has
  // begun since.
  bool Lost(const std::string& name, const store::FileInfo& info, store::Token token,
            const std::string& why);
  // An open was refused, as the two sides differ. `reason` is half a sentence. False: the file's
  // state was DIVERGED before.
  bool Diverged(const std::string& name, const store::FileInfo& info, const std::string& reason);

  // An administrator may have changed the file. A state no longer counts if the file has another
  // newest cut, or another local file, by now. StatusOf() does the same.
  void Settle(const store::FileInfo& info);
  // The local file was found equal to the newest cut: the states DEGRADED and DIVERGED end.
  void FoundEqual(const std::string& name, const Bytes16& file_id);
  // The file was removed.
  void Forget(const Bytes16& file_id);

  // The state of a file. IN_SYNC: it has no writer, and its newest cut is that of a clean close, or
  // was found equal to the local file.
  v1::MirrorStatus StatusOf(const store::FileInfo& info);

  MirrorSummary Sum() const;

  // The bytes that are to outlive a restart, if they have changed since the last call.
  std::optional<std::string> TakeNews();
  // Takes in bytes of TakeNews(); ignores others. To be called before all else.
  void Restore(std::string_view news);

 private:
  struct Entry {
    v1::MirrorStatus status;
    store::Token token = 0;  // of the writer, or of the last one
    // DEGRADED, DIVERGED: the file when the state began. A later change by an administrator ends
    // the state.
    int64_t last_cut = 0;
    store::LocalStat local;
  };

  using Entries = std::map<Bytes16, Entry>;

  void Erase(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change(const std::string& name, Entry& entry, v1::MirrorState state,
              const std::string& detail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remember(const store::FileInfo& info, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entry that still counts; nullptr: none.
  Entry* Find(const store::FileInfo& info) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry& EntryOf(const Bytes16& file_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const size_t files_max_;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_MIRROR_STATES_H_
