// The connections of a ClusterClient, and what it knows of the owners of cells.
#ifndef H5MIRROR_RPC_SERVER_POOL_H_
#define H5MIRROR_RPC_SERVER_POOL_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/client.h"
#include "rpc/client_options.h"
#include "rpc/cluster_client.h"
#include "rpc/server_route.h"

namespace h5mirror::rpc {

// Thread-safe. Its lock is not held while a server is connected.
class ServerPool {
 public:
  // `timeout`, `refused_max`: for a single server. Each of several servers gets
  // ServerWalk::Limit().
  ServerPool(ClientOptions cluster, ConnectOne connect, absl::Duration timeout,
             absl::Duration refused_max)
      : cluster_(std::move(cluster)),
        connect_(std::move(connect)),
        timeout_(timeout),
        refused_max_(refused_max) {}

  const ClientOptions& cluster() const { return cluster_; }
  absl::Duration timeout() const { return timeout_; }
  absl::Duration refused_max() const { return refused_max_; }

  // The way of a call for the file.
  ServerWalk WalkTo(std::string_view name, absl::Time deadline);
  // A connection to the server of a walk. A caller may use it for as long as it likes. `limit`: to
  // connect, where there are other servers to ask; infinite: there is no other one.
  absl::StatusOr<std::shared_ptr<Client>> ClientOf(const ClientOptions& server,
                                                   absl::Duration limit);
  bool IsConnectedTo(const ClientOptions& server);
  // The call that went to `server` ended with `status`.
  void OnEnd(const ClientOptions& server, const absl::Status& status);
  size_t connection_count();

 private:
  struct Connection {
    std::shared_ptr<Client> client;
    absl::Time last_use;
  };

  // Takes connections out that are not used; they are closed when the result goes.
  std::vector<std::shared_ptr<Client>> TakeUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ClientOptions cluster_;
  const ConnectOne connect_;
  const absl::Duration timeout_;
  const absl::Duration refused_max_;

  absl::Mutex mutex_;
  OwnerCache owners_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by target
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SERVER_POOL_H_
