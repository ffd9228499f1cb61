// The threads of a node.
#ifndef H5MIRROR_CLUSTER_RUNNER_H_
#define H5MIRROR_CLUSTER_RUNNER_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/stop_flag.h"
#include "cluster/node.h"
#include "cluster/timing.h"

namespace h5mirror::cluster {

// Two threads: `h5m-beat` calls Node::Beat() and waits for the registry only; `h5m-cells` calls
// Node::Step(), which may wait for Ceph, and does so at once where a cell was opened or closed, or
// all are to be given away. So a fencing that hangs costs no beat. Both end when the node is gone.
//
// Thread-safe. Stop() and the destructor wait for the calls in hand, not within a thread of the
// node.
class Runner {
 public:
  // Both must outlive this.
  Runner(Node& node, Clock& clock, const Timing& timing);
  ~Runner() { Stop(); }
  Runner(const Runner&) = delete;

  // Ends the threads. The node is as a paused server then: others will give it up, unless it is
  // gone.
  void Stop();
  // Whether the node was gone, and both threads had ended, within `timeout`.
  bool AwaitGone(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // `wait` waits for the next turn, where the last one began so long ago. True: there is none.
  void Run(const char* name, const std::function<void()>& turn,
           const std::function<bool(absl::Duration elapsed)>& wait) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndWaits();
  bool HasEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_ == 0; }

  Node& node_;
  Clock& clock_;
  const absl::Duration every_;
  StopFlag stop_;
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 2;
  std::thread beats_;
  std::thread steps_;
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RUNNER_H_
