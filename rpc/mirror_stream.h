// Opens the MirrorStream of client.h.
#ifndef H5MIRROR_RPC_MIRROR_STREAM_H_
#define H5MIRROR_RPC_MIRROR_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// Starts a MirrorFile call. Raw bytes both ways: frames go through rpc/frame_codec.h.
absl::StatusOr<std::unique_ptr<MirrorStream>> StartMirrorStream(
    const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options);

// `status` with the server's name before its message.
absl::Status NameServer(const ClientOptions& options, const absl::Status& status);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_MIRROR_STREAM_H_
