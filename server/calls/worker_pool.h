// A few threads for work that may wait for a disk.
#ifndef H5MIRROR_SERVER_CALLS_WORKER_POOL_H_
#define H5MIRROR_SERVER_CALLS_WORKER_POOL_H_

#include <pthread.h>

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::server {

// Thread-safe. Tasks start in the order in which they were scheduled.
class WorkerPool {
 public:
  // `name`: of the threads, at most 15 characters.
  WorkerPool(int thread_count, const char* name) {
    for (int i = 0; i < thread_count; ++i) {
      threads_.emplace_back([this] { Run(); });
      pthread_setname_np(threads_.back().native_handle(), name);
    }
  }
  // Finishes all tasks.
  ~WorkerPool() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Schedule(std::function<void()> task) {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  // True: there are tasks that no thread has begun.
  bool HasWaiting() const {
    absl::MutexLock lock(&mutex_);
    return !tasks_.empty();
  }

 private:
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  void Run() {
    for (;;) {
      std::function<void()> task;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &WorkerPool::HasNews));
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  mutable absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_WORKER_POOL_H_
