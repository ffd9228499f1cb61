// Opens and closes the stores of cells when the cluster's protocol says so.
#ifndef H5MIRROR_SERVER_CLUSTER_STORE_HOST_H_
#define H5MIRROR_SERVER_CLUSTER_STORE_HOST_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cluster/node.h"
#include "server/cluster/cluster_store.h"

namespace h5mirror::server {

// Opens the store of a cell. In CephFS by a mount of its own, which knows the newest map of the
// OSDs, and is in this server's record of the registry before it writes. After an error, store and
// mount are gone. Errors: as cluster::CellHost::Open().
using StoreOpener = std::function<absl::StatusOr<OpenedStore>(const std::string& cell)>;

// Each open and close has a thread `h5m-cell` of its own, so that a cell that hangs holds no other
// one.
//
// Thread-safe. The destructor waits for the threads.
class StoreHost final : public cluster::CellHost {
 public:
  // `store` must outlive this. `close_timeout`: the time that a closing store has to apply what is
  // durable; the next owner does the rest. Also the time that sessions and calls have to end.
  StoreHost(ClusterStore& store, StoreOpener open, absl::Duration close_timeout)
      : store_(store), open_(std::move(open)), close_timeout_(close_timeout) {}
  // AwaitAll().
  ~StoreHost() override;

  void Open(const std::string& cell, uint64_t epoch, cluster::Recovery recovery,
            Done done) override;
  void Served(const std::string& cell, uint64_t epoch) override;
  void Retire(const std::string& cell, uint64_t epoch, Done done) override;
  void Close(const std::string& cell, uint64_t epoch, Done done) override;

  // Waits for the opens and closes that have begun.
  void AwaitAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Threads that are not joined yet: those that run, and those that have ended since the last
  // start.
  size_t thread_count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Work {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> is_done;
  };
  void Start(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

  ClusterStore& store_;
  const StoreOpener open_;
  const absl::Duration close_timeout_;
  mutable absl::Mutex mutex_;
  std::vector<Work> works_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_STORE_HOST_H_
