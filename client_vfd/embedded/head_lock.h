// sec2's advisory lock on the file itself, which stock programs look at.
#ifndef H5MIRROR_CLIENT_VFD_EMBEDDED_HEAD_LOCK_H_
#define H5MIRROR_CLIENT_VFD_EMBEDDED_HEAD_LOCK_H_

#include <string>

#include "absl/status/status.h"

namespace h5mirror::vfd {

enum class HeadLocking { kYes, kNo };

// Not thread-safe. Released by the destructor.
class HeadLock {
 public:
  HeadLock() = default;
  HeadLock(const HeadLock&) = delete;
  HeadLock& operator=(const HeadLock&) = delete;
  ~HeadLock() { LetGo(); }

  // Locks what has the name now, instead of what had it before; OK where nothing has. A file
  // system without locks is no error, as with HDF5's BEST_EFFORT. kUnavailable: others hold it.
  absl::Status Take(const std::string& path);
  // Releases it; in a forked child leaves it to the parent (flock(2)).
  void LetGo();

 private:
  int fd_ = -1;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_HEAD_LOCK_H_
