// A few threads for work that may wait for a disk, shared by principals in turns.
#ifndef H5MIRROR_SERVER_CALLS_FAIR_POOL_H_
#define H5MIRROR_SERVER_CALLS_FAIR_POOL_H_

#include <pthread.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::server {

// Thread-safe. The tasks of one principal start in the order in which they were scheduled. Each
// principal has one task in turn, however many tasks of others wait. One principal runs on at most
// three quarters of the threads, so that the others find one free.
class FairPool {
 public:
  // `name`: of the threads, at most 15 characters.
  FairPool(int thread_count, const char* name)
      : FairPool(thread_count, name, thread_count > 1 ? (thread_count * 3 + 3) / 4 : 1) {}
  // One principal runs on at most `running_max` of the threads.
  FairPool(int thread_count, const char* name, int running_max) : running_max_(running_max) {
    for (int i = 0; i < thread_count; ++i) {
      threads_.emplace_back([this] { Run(); });
      pthread_setname_np(threads_.back().native_handle(), name);
    }
  }
  // Finishes all tasks.
  ~FairPool() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  void Schedule(const std::string& principal, std::function<void()> task) {
    absl::MutexLock lock(&mutex_);
    Queue& queue = queues_[principal];
    queue.tasks.push_back(std::move(task));
    ++waiting_;
    if (queue.tasks.size() == 1 && queue.running < running_max_) turns_.push_back(principal);
  }
  // True: there are tasks that no thread has begun.
  bool HasWaiting() const {
    absl::MutexLock lock(&mutex_);
    return waiting_ > 0;
  }

 private:
  struct Queue {
    std::deque<std::function<void()>> tasks;
    int running = 0;
  };

  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !turns_.empty() || (stopping_ && queues_.empty());
  }

  void Run() {
    for (;;) {
      std::string principal;
      std::function<void()> task;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &FairPool::HasNews));
        if (turns_.empty()) return;
        principal = std::move(turns_.front());
        turns_.pop_front();
        Queue& queue = queues_[principal];
        task = std::move(queue.tasks.front());
        queue.tasks.pop_front();
        --waiting_;
        ++queue.running;
        if (!queue.tasks.empty() && queue.running < running_max_) turns_.push_back(principal);
      }
      task();
      task = nullptr;
      absl::MutexLock lock(&mutex_);
      Ended(principal);
    }
  }

  void Ended(const std::string& principal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = queues_.find(principal);
    Queue& queue = found->second;
    // At its limit the principal was not in `turns_`; now it is again.
    if (queue.running-- == running_max_ && !queue.tasks.empty()) turns_.push_back(principal);
    if (queue.running == 0 && queue.tasks.empty()) queues_.erase(found);
  }

  const int running_max_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  // The principals that have tasks and may run one more, each once.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// The same for tasks of the server's own, which start in the order in which they were scheduled.
class WorkerPool {
 public:
  WorkerPool(int thread_count, const char* name) : pool_(thread_count, name, thread_count) {}
  void Schedule(std::function<void()> task) { pool_.Schedule("", std::move(task)); }

 private:
  FairPool pool_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_FAIR_POOL_H_
