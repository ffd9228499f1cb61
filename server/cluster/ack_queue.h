// Holds the answers of durable cuts until this server has been seen to own their cell after their
// sync (docs/design/049-cells.md, "Order of syncs").
#ifndef H5MIRROR_SERVER_CLUSTER_ACK_QUEUE_H_
#define H5MIRROR_SERVER_CLUSTER_ACK_QUEUE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/cluster/ownership.h"

namespace h5mirror::server {

// One thread, `h5m-acks`, reads the registry once for all that wait, and answers in the order in
// which they came. While the registry is away, answers wait: the cuts are durable, and clients keep
// what is not acked.
//
// Thread-safe.
class AckQueue {
 public:
  // Called once. OK: the synced cut may be acked. kUnavailable: it may never be acked here, because
  // this server does not own the cell any more, or the queue has stopped.
  using Answer = std::function<void(const absl::Status& status)>;

  // `ownership` must outlive this.
  explicit AckQueue(Ownership& ownership);
  // Stop().
  ~AckQueue();
  AckQueue(const AckQueue&) = delete;

  // To be called after the sync. `answer` is called by the thread of the queue, with no lock held;
  // after Stop() by the caller.
  void Put(std::string cell, uint64_t epoch, Answer answer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Looks at the registry once more for all that wait, answers, and ends the thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    std::string cell;
    uint64_t epoch;
    Answer answer;
  };
  void Run();
  // Returns those that need another look at the registry, in order.
  std::vector<Waiting> AnswerAll(std::vector<Waiting> batch, bool is_last);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stops_ || !waiting_.empty(); }

  Ownership& ownership_;
  absl::Mutex mutex_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Turns a guard's error into the one for callers: ask again, here or elsewhere.
absl::Status AskAgain(const absl::Status& guard);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_ACK_QUEUE_H_
