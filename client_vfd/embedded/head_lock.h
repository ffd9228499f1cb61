// sec2's advisory lock on the head, for stock programs.
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

  // Locks the file that has the name now, instead of a former one. OK also where there is no file,
  // and on a file system without locks, as with HDF5's BEST_EFFORT. kUnavailable: another program
  // holds the lock.
  absl::Status Take(const std::string& path);
  // Releases the lock. In a forked child the parent's lock stays (flock(2)).
  void LetGo();

 private:
  int fd_ = -1;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_EMBEDDED_HEAD_LOCK_H_
