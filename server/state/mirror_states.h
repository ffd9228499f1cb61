// How each file stands to the local file that it mirrors, as far as the server knows: what writers
// report of themselves, and what becomes of writers. After a restart writers report anew, and what
// stands without a writer, DEGRADED and DIVERGED, comes from a file
// (docs/reference/format.md, "Mirror states").
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

// Bounds on what a client says of itself. kInvalidArgument names the field.
absl::Status CheckMirrorStatus(const v1::MirrorStatus& status);

// Of all files that are not in sync; each lag is that of the file that lags most.
struct MirrorSummary {
  std::map<v1::MirrorState, size_t> files;
  int64_t lag_cuts = 0;
  int64_t lag_bytes = 0;
  absl::Duration lag = absl::ZeroDuration();
};

// Thread-safe. Logs each change of a file's state once.
class MirrorStates {
 public:
  // `clock` must outlive it. Beyond `files_max` files without a writer some are forgotten.
  explicit MirrorStates(Clock& clock, size_t files_max = 65536)
      : clock_(clock), files_max_(files_max) {}

  // A session has begun, under that token of the lease.
  void Connected(const std::string& name, const Bytes16& file_id, store::Token token);
  // Its writer says how it stands; only CONNECTED and RESYNCING are a writer's to say.
  void Reported(const std::string& name, const Bytes16& file_id, store::Token token,
                const v1::MirrorStatus& status);
  // It has ended in order. Nothing, where another has begun since.
  void Ended(const Bytes16& file_id, store::Token token);
  // It has ended, and the local file may hold more than arrived, as `why` says; `info` is of the
  // file without it. Nothing, where another has begun since.
  void Lost(const std::string& name, const store::FileInfo& info, store::Token token,
            const std::string& why);
  // An open was refused, as the two sides differ; `reason` is half a sentence.
  void Diverged(const std::string& name, const store::FileInfo& info, const std::string& reason);

  // An administrator may have changed the file: what was said of a file that had another newest cut
  // or another local file counts no more. StatusOf() does the same.
  void Settle(const store::FileInfo& info);
  // The local file was compared with the newest cut: a writer that was lost left nothing undone,
  // and the two sides differ no more.
  void FoundEqual(const std::string& name, const Bytes16& file_id);
  // It was removed.
  void Forget(const Bytes16& file_id);

  // What is known of a file: IN_SYNC where nobody writes and its newest cut is of a clean close, or
  // has been found to be the same as the local file.
  v1::MirrorStatus StatusOf(const store::FileInfo& info);

  MirrorSummary Sum() const;

  // What is to outlive a restart, where that has changed since the last call.
  std::optional<std::string> TakeNews();
  // What TakeNews() once gave. Of what cannot be understood nothing is taken. Before all else.
  void Restore(std::string_view news);

 private:
  struct Entry {
    v1::MirrorStatus status;
    store::Token token = 0;  // of the writer that is, or was, there
    // DEGRADED, DIVERGED: the file as it was when it became so. What an administrator does to it
    // afterwards settles it.
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
