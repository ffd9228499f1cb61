// The right to change one file's bytes on the disk, other than by a writer's writes.
//
//   background, rollback, new origin, one step of a prune or a verification   WorkTurn
//   open, close, move, keep                                                   absl::MutexLock
//
// A thread holds it during I/O and syncs, so others wait for seconds. Threads that use turns get it
// in the order in which they came. Without turns, a prune, or the background of a file that is
// written without a pause, would take the lock again before a waiting thread wakes up.
//
//   LockInTurn() --> waits for the turn --> waits for the lock --> has it; the next one's turn
//                    |<------------- is_wanted() ------------->|
#ifndef H5MIRROR_ONION_STORE_SHARED_WORK_LOCK_H_
#define H5MIRROR_ONION_STORE_SHARED_WORK_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::store {

// Thread-safe. Not reentrant. Comes before all other locks of the file.
class ABSL_LOCKABLE WorkLock : public absl::Mutex {
 public:
  // As Lock(), after the threads that wait in turn already.
  void LockInTurn() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    ++wanted_;
    turn_.Lock();
    Lock();
    turn_.Unlock();
    --wanted_;
  }
  // Whether a thread waits in turn. Then the thread that has the lock should release it, even if it
  // has more work.
  bool is_wanted() const { return wanted_ > 0; }

 private:
  absl::Mutex turn_;  // held only while a thread waits for the lock
  std::atomic<int> wanted_{0};
};

// Holds the lock from one LockInTurn() on. `lock` must outlive it.
class ABSL_SCOPED_LOCKABLE WorkTurn {
 public:
  explicit WorkTurn(WorkLock* lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock) : lock_(lock) {
    lock->LockInTurn();
  }
  ~WorkTurn() ABSL_UNLOCK_FUNCTION() { lock_->Unlock(); }
  WorkTurn(const WorkTurn&) = delete;
  WorkTurn& operator=(const WorkTurn&) = delete;

 private:
  WorkLock* const lock_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_WORK_LOCK_H_
