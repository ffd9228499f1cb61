// A channel for clients that mainly read.
#ifndef H5MIRROR_RPC_READING_CHANNEL_H_
#define H5MIRROR_RPC_READING_CHANNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// As MakeChannel(), but the connection's window grows by probing. Without that, one message fits at
// a time, and each costs a round trip: over 1 ms a third of the link's throughput was measured. For
// clients that mainly send, MakeChannel() is faster.
std::shared_ptr<grpc::Channel> MakeReadingChannel(const ClientOptions& options);

// As Client::Connect(), over such a channel.
absl::StatusOr<std::unique_ptr<Client>> ConnectToRead(const ClientOptions& options,
                                                      absl::Duration connect_timeout);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_READING_CHANNEL_H_
