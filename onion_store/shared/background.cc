#include "onion_store/shared/background.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/signal_block.h"

namespace h5mirror::store {
namespace {

// In one go for what becomes due later.
constexpr absl::Duration kWaitMax = absl::Seconds(1);

}  // namespace

Background::Background(int thread_count, Env& env) : env_(env) {
  const SignalBlock block;
  // Else the threads that did begin would end the process.
  absl::Cleanup end_threads = [this] { Stop(); };
  for (int i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this] { Loop(); });
    pthread_setname_np(threads_.back().native_handle(), "store-apply");
  }
  std::move(end_threads).Cancel();
}

Background::~Background() { Stop(); }

void Background::Post(Worker worker, absl::Time when) {
  absl::MutexLock lock(&mutex_);
  PostLocked(std::move(worker), when);
}

void Background::PostLocked(Worker worker, absl::Time when) {
  if (stopped_ || when == absl::InfiniteFuture()) return;
  auto known = due_.find(worker);
  if (known != due_.end()) {
    if (known->second <= when) return;
    auto range = queue_.equal_range(known->second);
    for (auto at = range.first; at != range.second; ++at) {
      if (at->second != worker) continue;
      queue_.erase(at);
      break;
    }
    due_.erase(known);
  }
  due_[worker] = when;
  queue_.emplace(when, std::move(worker));
  changed_.SignalAll();
}

bool Background::RunOne(absl::Time now) {
  for (auto at = queue_.begin(); at != queue_.end() && at->first <= now; ++at) {
    if (running_.contains(at->second)) continue;  // Comes again when that is done.
    Worker worker = at->second;
    due_.erase(worker);
    queue_.erase(at);
    running_.insert(worker);
    mutex_.Unlock();
    absl::Time next = worker->RunBackground();
    mutex_.Lock();
    running_.erase(worker);
    PostLocked(worker, next);
    changed_.SignalAll();
    // The last reference may go here, and with it a file's descriptors: not under the lock.
    mutex_.Unlock();
    worker.reset();
    mutex_.Lock();
    return true;
  }
  return false;
}

void Background::Loop() {
  absl::MutexLock lock(&mutex_);
  while (!stopped_) {
    // One clock reading for both: what becomes due between two would be slept over.
    const absl::Time now = env_.Now();
    if (RunOne(now)) continue;
    auto next = std::find_if(queue_.begin(), queue_.end(),
                             [&](const auto& entry) { return entry.first > now; });
    // The store's time and the machine's may differ, and either may be set.
    changed_.WaitWithTimeout(&mutex_, next == queue_.end() ? absl::InfiniteDuration()
                                                           : std::min(next->first - now, kWaitMax));
  }
}

bool Background::RunDue() {
  absl::MutexLock lock(&mutex_);
  return !stopped_ && RunOne(env_.Now());
}

bool Background::WaitIdle(absl::Time horizon, absl::Duration timeout) {
  while (threads_.empty() && RunDue()) continue;
  absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(&mutex_);
  while (!running_.empty() || (!queue_.empty() && queue_.begin()->first <= horizon)) {
    if (changed_.WaitWithDeadline(&mutex_, deadline)) return false;
  }
  return true;
}

bool Background::PrepareFork(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  mutex_.Lock();
  while (!running_.empty()) {
    if (changed_.WaitWithDeadline(&mutex_, deadline)) break;
  }
  return running_.empty();
}

void Background::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  std::multimap<absl::Time, Worker> queue;
  std::map<Worker, absl::Time> due;
  absl::MutexLock lock(&mutex_);
  queue.swap(queue_);
  due.swap(due_);
}

}  // namespace h5mirror::store
