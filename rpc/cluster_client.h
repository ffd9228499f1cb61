// A Client of a cluster: each call goes to the server that has its file, over a connection that all
// calls to that server share. Of a server alone it is that server's Client.
#ifndef H5MIRROR_RPC_CLUSTER_CLIENT_H_
#define H5MIRROR_RPC_CLUSTER_CLIENT_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// Connects to one server, with the times of Client::Connect().
using ConnectOne = std::function<absl::StatusOr<std::unique_ptr<Client>>(
    const ClientOptions& server, absl::Duration timeout, absl::Duration refused_max)>;

// To one server. Its redirects are errors, and are not followed.
absl::StatusOr<std::unique_ptr<Client>> ConnectDirectly(const ClientOptions& server,
                                                        absl::Duration timeout,
                                                        absl::Duration refused_max);

// Waits between two attempts.
using Sleep = std::function<void(absl::Duration)>;

// At most kConnectionsMax connections are kept; the one that was unused for longest goes first. A
// connection that was unused for the time below is closed, except the last one.
inline constexpr size_t kConnectionsMax = 16;
inline constexpr absl::Duration kConnectionIdleMax = absl::Minutes(5);

// Waits until one of the servers of `options` is connected, for the times of Client::Connect(),
// which hold for all of them together. A call tries to connect for the same time. After the first
// failure of a server that it has reached, it goes on to the other servers for the same time. A
// call that changes something goes on only if the failed server has not seen it. The first call to
// a server may wait for its connection. Errors: kUnavailable names all servers that were asked.
absl::StatusOr<std::unique_ptr<Client>> ConnectToCluster(const ClientOptions& options,
                                                         ConnectOne connect, absl::Duration timeout,
                                                         absl::Duration refused_max,
                                                         Sleep sleep = absl::SleepFor);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CLUSTER_CLIENT_H_
