// Opens the FollowStream of client.h.
#ifndef H5MIRROR_RPC_FOLLOW_STREAM_H_
#define H5MIRROR_RPC_FOLLOW_STREAM_H_

#include <memory>

#include "grpcpp/channel.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

std::unique_ptr<FollowStream> StartFollowStream(const std::shared_ptr<grpc::Channel>& channel,
                                                const ClientOptions& options,
                                                const v1::FollowFileRequest& request);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_FOLLOW_STREAM_H_
