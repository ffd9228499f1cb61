// A channel for who reads much over it.
#ifndef H5MIRROR_RPC_READING_CHANNEL_H_
#define H5MIRROR_RPC_READING_CHANNEL_H_

#include <memory>

#include "grpcpp/channel.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// As MakeChannel(), but that the connection's window grows by probing. Else it holds one message at
// a time, and each costs a round trip: over 1 ms a third of what the link carries was seen. Who
// mainly sends is better off without the probes.
std::shared_ptr<grpc::Channel> MakeReadingChannel(const ClientOptions& options);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_READING_CHANNEL_H_
