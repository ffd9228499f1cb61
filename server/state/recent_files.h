// Files that were just read from, kept open for a moment. The store forgets a file that nobody
// holds, and a reader comes back for the next range within milliseconds: opening the file for
// each call would cost more than the call.
#ifndef H5MIRROR_SERVER_STATE_RECENT_FILES_H_
#define H5MIRROR_SERVER_STATE_RECENT_FILES_H_

#include <cstddef>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// Thread-safe. Files are let go of with no lock held: that may close a database.
class RecentFiles {
 public:
  // Short, so that a head that is changed behind the store's back is noticed at the next open.
  static constexpr absl::Duration kKeep = absl::Seconds(2);
  static constexpr size_t kFilesMax = 64;

  explicit RecentFiles(Clock& clock) : clock_(clock) {}

  // Holds `file` for kKeep from now; beyond kFilesMax the one longest not used is let go of.
  void Keep(std::shared_ptr<store::File> file);

  // Lets go of those whose time is over.
  void OnTimer();
  void Clear();

  size_t size();

 private:
  struct Entry {
    std::shared_ptr<store::File> file;
    absl::Duration until;
  };
  using Entries = std::list<Entry>;

  // Takes out what is to be let go of by the caller.
  Entries TakeUntil(absl::Duration time);

  Clock& clock_;
  absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // the one longest not used first
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_RECENT_FILES_H_
