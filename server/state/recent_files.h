// Keeps files open for a moment after a read. The store forgets a file without holders, and a
// reader comes back for the next range within milliseconds: an open for each call would cost more
// than the call.
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

// Thread-safe. Lets go of files with no lock held, as that may close a database.
class RecentFiles {
 public:
  // Short, so that the next open soon notices a head that was changed from outside.
  static constexpr absl::Duration kKeep = absl::Seconds(2);
  static constexpr size_t kFilesMax = 64;

  explicit RecentFiles(Clock& clock) : clock_(clock) {}

  // Holds `file` for kKeep from now. Beyond kFilesMax lets go of the least recently used one.
  void Keep(std::shared_ptr<store::File> file);

  // Lets go of the files whose time is over.
  void OnTimer();
  void Clear();

  size_t size();

 private:
  struct Entry {
    std::shared_ptr<store::File> file;
    absl::Duration until;
  };
  using Entries = std::list<Entry>;

  // Takes out the files that the caller lets go of.
  Entries TakeUntil(absl::Duration time);

  Clock& clock_;
  absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // the least recently used first
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_RECENT_FILES_H_
