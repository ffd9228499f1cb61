// The threads that sync and apply, for all files of a store.
#ifndef H5MIRROR_ONION_STORE_SHARED_BACKGROUND_H_
#define H5MIRROR_ONION_STORE_SHARED_BACKGROUND_H_

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/env.h"

namespace h5mirror::store {

// An object with work that Background calls for.
class BackgroundWorker {
 public:
  virtual ~BackgroundWorker() = default;
  // Does the work that is due. Returns when to call again; InfiniteFuture: when posted.
  virtual absl::Time RunBackground() = 0;
};

// Thread-safe. One worker runs in at most one thread at a time. A posted worker is kept alive.
class Background {
 public:
  // 0 threads: RunDue() does the work. Times are those of `env`, which must outlive it.
  // Throws std::system_error where the system gives no more threads; no work has begun then.
  explicit Background(int thread_count, Env& env = Env::Posix());
  ~Background();  // Stop().

  // `worker` runs at `when` or soon after; an earlier time replaces a later one.
  void Post(std::shared_ptr<BackgroundWorker> worker, absl::Time when);
  // Runs one worker that is due, in the calling thread. False: none is due.
  bool RunDue();
  // Waits until no worker runs and none is due before `horizon`. False: `timeout` has passed.
  bool WaitIdle(absl::Time horizon, absl::Duration timeout);
  // Around fork(2): waits until no worker runs, and lets none begin until ParentAfterFork(). False:
  // a worker still ran after `timeout`.
  bool PrepareFork(absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }
  // Ends each thread after its worker. Later posts are dropped.
  void Stop();

 private:
  using Worker = std::shared_ptr<BackgroundWorker>;

  void Loop();
  // Runs one worker that is due at `now`. False: none is.
  bool RunOne(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostLocked(Worker worker, absl::Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Env& env_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::multimap<absl::Time, Worker> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<Worker, absl::Time> due_ ABSL_GUARDED_BY(mutex_);  // the same, by worker
  std::set<Worker> running_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_BACKGROUND_H_
