// A cluster as operators see it, and as callers that look for a file's server.
#ifndef H5MIRROR_SERVER_CLUSTER_OPERATIONS_H_
#define H5MIRROR_SERVER_CLUSTER_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/cells.h"
#include "cluster/node.h"
#include "cluster/records.h"
#include "onion_store/store.h"

namespace h5mirror::server {

// Thread-safe. Errors of all calls: kUnavailable  this server has not joined yet, or the registry
//                                   does not answer.
class ClusterOperations {
 public:
  using Listener = std::function<void(const cluster::NodeEvent& event)>;
  struct State {
    std::string node;  // this server's ID
    cluster::ClusterView view;
    // By ID: the time since this server last saw the beat change. Servers without a known time are
    // left out.
    std::map<std::string, absl::Duration> beat_ages;
  };

  virtual ~ClusterOperations() = default;

  // The registry as it is. Waits for it.
  virtual absl::StatusOr<State> Look() = 0;
  // cluster::Cells::RoutesBelow(): by memory. kUnavailable: before the first look at the registry.
  virtual absl::StatusOr<std::map<std::string, cluster::Route>> RoutesBelow(
      std::string_view directory) = 0;
  // cluster::AskToMove().
  virtual absl::StatusOr<uint64_t> Move(const std::string& cell, const std::string& to) = 0;
  // cluster::AskToDrain().
  virtual absl::Status Drain(const std::string& id, cluster::DrainWish wish) = 0;
  // Gives a server up: with `force` at the next look, else some beats later, if it does not beat
  // again. Errors: kNotFound            no such server;
  //   kFailedPrecondition  it is over already, or this one, or its beats go on and `force` is not
  //                        set.
  virtual absl::Status Evict(const std::string& id, bool force) = 0;

  virtual cluster::NodeCounts Counts() = 0;
  // The time since this server's last successful beat; InfiniteDuration: there was none.
  virtual absl::Duration OwnBeatAge() = 0;
  // `listener` hears of events from now on, from one thread. Null: no listener; when this returns,
  // no call of the former one is running.
  virtual void SetListener(Listener listener) = 0;
};

// Those of the cluster that `store` belongs to; null: it is no cluster's.
ClusterOperations* OperationsOf(store::Store& store);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CLUSTER_OPERATIONS_H_
