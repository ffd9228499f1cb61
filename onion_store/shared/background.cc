#include "onion_store/shared/background.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/signal_block.h"

namespace h5mirror::store {
namespace {

// The longest single wait for work that becomes due later.
constexpr absl::Duration kWaitMax = absl::Seconds(1);
// The wait while work is due, but too many threads work or an apply goes first.
constexpr absl::Duration kWaitDue = absl::Milliseconds(50);
// The longest time that an apply may wait for its worker.
constexpr absl::Duration kApplyWaitMax = absl::Milliseconds(100);

}  // namespace

Background::Background(int thread_count, Env& env, int durable_threads_max, int apply_threads_max,
                       absl::Duration hangs)
    : env_(env), thread_count_(thread_count), hangs_(hangs) {
  // Else the threads that have begun would end the process.
  absl::Cleanup end_threads = [this] { Stop(); };
  {
    absl::MutexLock lock(&mutex_);
    Crew& durable = CrewOf(BackgroundPool::kDurable);
    Crew& apply = CrewOf(BackgroundPool::kApply);
    durable.name = "store-durable";
    durable.threads_max = durable_threads_max;
    apply.name = "store-apply";
    apply.threads_max = apply_threads_max;
    for (int i = 0; i < thread_count; ++i) {
      StartThread(durable);
      if (&apply != &durable) StartThread(apply);
    }
  }
  std::move(end_threads).Cancel();
}

Background::~Background() { Stop(); }

void Background::StartThread(Crew& crew) {
  const SignalBlock block;
  threads_.emplace_back([this, crew = &crew] { Loop(crew); });
  ++crew.thread_count;
  pthread_setname_np(threads_.back().native_handle(), crew.name);
}

void Background::Post(Worker worker, absl::Time when, BackgroundPool pool) {
  absl::MutexLock lock(&mutex_);
  PostLocked(std::move(worker), when, pool);
}

void Background::PostLocked(Worker worker, absl::Time when, BackgroundPool pool) {
  if (stopped_ || when == absl::InfiniteFuture()) return;
  auto& queue = CrewOf(pool).queue;
  Entry entry{std::move(worker), pool};
  auto known = due_.find(entry);
  if (known != due_.end()) {
    if (known->second <= when) return;
    auto range = queue.equal_range(known->second);
    for (auto at = range.first; at != range.second; ++at) {
      if (at->second.worker != entry.worker || at->second.pool != pool) continue;
      queue.erase(at);
      break;
    }
    due_.erase(known);
  }
  due_[entry] = when;
  queue.emplace(when, std::move(entry));
  changed_.SignalAll();
}

bool Background::MayRun(const Crew& crew) const {
  const absl::Time now = absl::Now();
  const auto hang_count = std::count_if(running_.begin(), running_.end(), [&](const auto& running) {
    return running.second.crew == &crew && now - running.second.begun >= hangs_;
  });
  return crew.busy_count - hang_count < thread_count_;
}

void Background::KeepOneIdle(Crew& crew) {
  if (stopped_ || thread_count_ < 2 || crew.busy_count < crew.thread_count) return;
  if (crew.thread_count >= crew.threads_max) return;
  try {
    StartThread(crew);
  } catch (const std::system_error&) {
    // The existing threads go on, and the next worker tries again.
  }
}

bool Background::LetsApplyGoFirst(const Entry& entry, absl::Time now) {
  if (thread_count_ < 2 || entry.pool == BackgroundPool::kApply) return false;
  const auto apply = due_.find({entry.worker, BackgroundPool::kApply});
  if (apply == due_.end() || now - apply->second < kApplyWaitMax) return false;
  const Crew& crew = CrewOf(BackgroundPool::kApply);
  return crew.busy_count < crew.thread_count && MayRun(crew);
}

bool Background::RunOne(Crew& crew, absl::Time now) {
  for (auto at = crew.queue.begin(); at != crew.queue.end() && at->first <= now; ++at) {
    if (running_.contains(at->second.worker)) continue;  // It comes again when that run is done.
    if (LetsApplyGoFirst(at->second, now)) continue;
    auto [worker, pool] = at->second;
    due_.erase(at->second);
    crew.queue.erase(at);
    running_[worker] = {&crew, absl::Now()};
    ++crew.busy_count;
    if (thread_count_ > 0) KeepOneIdle(crew);
    mutex_.Unlock();
    const BackgroundTimes next = worker->RunBackground(pool);
    mutex_.Lock();
    --crew.busy_count;
    running_.erase(worker);
    PostLocked(worker, next.durable, BackgroundPool::kDurable);
    PostLocked(worker, next.apply, BackgroundPool::kApply);
    changed_.SignalAll();
    // The last reference may end here, and close a file's descriptors: so not under the lock.
    mutex_.Unlock();
    worker.reset();
    mutex_.Lock();
    return true;
  }
  return false;
}

void Background::Loop(Crew* crew) {
  absl::MutexLock lock(&mutex_);
  while (!stopped_) {
    // One clock reading for both: else work that becomes due between two readings would be missed.
    const absl::Time now = env_.Now();
    if (MayRun(*crew) && RunOne(*crew, now)) continue;
    changed_.WaitWithTimeout(&mutex_, WaitOf(*crew, now));
  }
}

absl::Duration Background::WaitOf(const Crew& crew, absl::Time now) const {
  for (const auto& [when, entry] : crew.queue) {
    // The store's time and the machine's may differ, and either may be set.
    if (when > now) return std::min(when - now, kWaitMax);
    if (!running_.contains(entry.worker)) return kWaitDue;
  }
  return crew.queue.empty() ? absl::InfiniteDuration() : kWaitMax;
}

bool Background::RunDue() {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return false;
  const absl::Time now = env_.Now();
  return RunOne(crews_[0], now) || RunOne(crews_[1], now);
}

bool Background::IsIdle(absl::Time horizon) const {
  return running_.empty() && std::all_of(crews_.begin(), crews_.end(), [&](const Crew& crew) {
           return crew.queue.empty() || crew.queue.begin()->first > horizon;
         });
}

bool Background::WaitIdle(absl::Time horizon, absl::Duration timeout) {
  while (thread_count_ == 0 && RunDue()) continue;
  absl::Time deadline = absl::Now() + timeout;
  absl::MutexLock lock(&mutex_);
  // A run that ends meanwhile may make its worker due at once, which is after `horizon`.
  while (!IsIdle(std::max(horizon, env_.Now()))) {
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
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    threads.swap(threads_);
    changed_.SignalAll();
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  std::array<std::multimap<absl::Time, Entry>, 2> queues;
  std::map<Entry, absl::Time> due;
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < crews_.size(); ++i) queues[i].swap(crews_[i].queue);
  due.swap(due_);
}

}  // namespace h5mirror::store
