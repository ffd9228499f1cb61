#include "server/cluster/store_host.h"

#include <pthread.h>

#include <utility>

namespace h5mirror::server {

StoreHost::~StoreHost() { AwaitAll(); }

void StoreHost::AwaitAll() {
  std::vector<Work> works;
  {
    absl::MutexLock lock(&mutex_);
    works.swap(works_);
  }
  for (Work& work : works) work.thread.join();
}

size_t StoreHost::thread_count() const {
  absl::MutexLock lock(&mutex_);
  return works_.size();
}

// A thread that has ended keeps its stack until it is joined, and an open may be repeated for ever.
void StoreHost::Start(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(works_, [](Work& each) {
    if (!each.is_done->load()) return false;
    each.thread.join();  // It has nothing left to do.
    return true;
  });
  auto is_done = std::make_shared<std::atomic<bool>>(false);
  works_.push_back({std::thread([work = std::move(work), is_done]() mutable {
                      pthread_setname_np(pthread_self(), "h5m-cell");
                      work();
                      work = nullptr;
                      is_done->store(true);
                    }),
                    is_done});
}

// A store is recovered in any case: one that was closed in order has nothing to recover.
void StoreHost::Open(const std::string& cell, uint64_t epoch, cluster::Recovery /*recovery*/,
                     Done done) {
  Start([this, cell, epoch, done = std::move(done)] {
    auto opened = open_(cell);
    if (opened.ok()) store_.Add(cell, epoch, *std::move(opened));
    done(opened.status());
  });
}

void StoreHost::Served(const std::string& cell, uint64_t /*epoch*/) { store_.TellCell(cell); }

void StoreHost::Retire(const std::string& cell, uint64_t /*epoch*/, Done done) {
  Start([this, cell, done = std::move(done)] { done(store_.RetireCell(cell, close_timeout_)); });
}

void StoreHost::Close(const std::string& cell, uint64_t /*epoch*/, Done done) {
  Start([this, cell, done = std::move(done)] { done(store_.CloseCell(cell, close_timeout_)); });
}

}  // namespace h5mirror::server
