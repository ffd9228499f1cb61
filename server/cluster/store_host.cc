#include "server/cluster/store_host.h"

#include <pthread.h>

#include <utility>

namespace h5mirror::server {

StoreHost::~StoreHost() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void StoreHost::Start(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  threads_.emplace_back([work = std::move(work)] {
    pthread_setname_np(pthread_self(), "h5m-cell");
    work();
  });
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

void StoreHost::Close(const std::string& cell, uint64_t /*epoch*/, Done done) {
  Start([this, cell, done = std::move(done)] { done(store_.CloseCell(cell, close_timeout_)); });
}

}  // namespace h5mirror::server
