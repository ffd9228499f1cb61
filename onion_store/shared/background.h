// The threads behind all files of a store, in two pools: one makes cuts durable, one applies them.
//
//   Post(worker, when, pool) --> due in that pool --> RunBackground(pool) in one of its threads
//         ^                                                   |
//         +------ when each pool is to run the worker again --+
//
// An apply may hang on one head for a long time: the disk is slow, or a program on another machine
// has the head open. So applies have no thread that cuts need to become durable. A sync may hang,
// too. So a worker that has run for over a second no longer counts: another worker gets a thread,
// up to a maximum. On a root behind a network no worker counts, because each waits nearly all the
// time.
#ifndef H5MIRROR_ONION_STORE_SHARED_BACKGROUND_H_
#define H5MIRROR_ONION_STORE_SHARED_BACKGROUND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/env.h"

namespace h5mirror::store {

enum class BackgroundPool : uint8_t { kDurable, kApply };

// When the pools are to run a worker again; InfiniteFuture: when it is posted.
struct BackgroundTimes {
  absl::Time durable = absl::InfiniteFuture();
  absl::Time apply = absl::InfiniteFuture();
};

// An object with work that Background calls for.
class BackgroundWorker {
 public:
  virtual ~BackgroundWorker() = default;
  // Does the work of `pool` that is due.
  virtual BackgroundTimes RunBackground(BackgroundPool pool) = 0;
};

// Thread-safe. One worker runs in at most one thread at a time, of both pools together. A posted
// worker is kept alive.
class Background {
 public:
  // Threads of a pool, those that hang included.
  static constexpr int kThreadsMax = 32;
  static constexpr absl::Duration kHangs = absl::Seconds(1);

  // `thread_count` threads in each pool, and at most the maximum of each. 1: one thread for both
  // pools, and never another. 0: RunDue() does the work. A worker that has run for `hangs` does not
  // count. Times are those of `env`, which must outlive it. Throws std::system_error if the system
  // gives no more threads; no work has begun then.
  explicit Background(int thread_count, Env& env = Env::Posix(),
                      int durable_threads_max = kThreadsMax, int apply_threads_max = kThreadsMax,
                      absl::Duration hangs = kHangs);
  ~Background();  // Stop().

  // `worker` runs in `pool` at `when` or soon after; an earlier time replaces a later one.
  void Post(std::shared_ptr<BackgroundWorker> worker, absl::Time when,
            BackgroundPool pool = BackgroundPool::kDurable);
  // Runs one worker that is due, in the calling thread. False: none is due.
  bool RunDue();
  // Waits until no worker runs and none is due, nor will be before `horizon`. False: `timeout` has
  // passed.
  bool WaitIdle(absl::Time horizon, absl::Duration timeout);
  // Around fork(2): waits until no worker runs, and lets none begin until ParentAfterFork(). False:
  // a worker still ran after `timeout`.
  bool PrepareFork(absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }
  // Ends each thread after its worker. Later posts are dropped.
  void Stop();

 private:
  using Worker = std::shared_ptr<BackgroundWorker>;
  struct Entry {
    Worker worker;
    BackgroundPool pool;
    bool operator<(const Entry& other) const {
      return std::tie(worker, pool) < std::tie(other.worker, other.pool);
    }
  };
  // The threads of a pool, or of both, and what waits for them.
  struct Crew {
    const char* name = "";
    int threads_max = 0;
    std::multimap<absl::Time, Entry> queue;
    int thread_count = 0;
    int busy_count = 0;
  };
  struct Run {
    const Crew* crew = nullptr;
    absl::Time begun;  // by the machine's clock
  };

  Crew& CrewOf(BackgroundPool pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return crews_[thread_count_ > 1 ? static_cast<size_t>(pool) : 0];
  }
  void Loop(Crew* crew);
  void StartThread(Crew& crew) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes sure that a thread waits for the next worker, as long as more threads are allowed.
  void KeepOneIdle(Crew& crew) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: as many threads work as may do so at once.
  bool MayRun(const Crew& crew) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: the worker of `entry` has waited long for its apply, and a thread is free for that.
  // Without this rule a file whose cuts become durable again and again would never be applied.
  bool LetsApplyGoFirst(const Entry& entry, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long a thread waits if it found nothing to do at `now`.
  absl::Duration WaitOf(const Crew& crew, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs one worker that is due at `now`. False: none is.
  bool RunOne(Crew& crew, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostLocked(Worker worker, absl::Time when, BackgroundPool pool)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsIdle(absl::Time horizon) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Env& env_;
  const int thread_count_;
  const absl::Duration hangs_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::array<Crew, 2> crews_ ABSL_GUARDED_BY(mutex_);
  std::map<Entry, absl::Time> due_ ABSL_GUARDED_BY(mutex_);  // the queues, by worker
  std::map<Worker, Run> running_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_BACKGROUND_H_
