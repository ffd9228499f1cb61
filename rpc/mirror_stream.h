// Opens the MirrorStream of client.h.
#ifndef H5MIRROR_RPC_MIRROR_STREAM_H_
#define H5MIRROR_RPC_MIRROR_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "rpc/client.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// How long one operation of a MirrorStream waits. A server that is gone or stopped is noticed long
// before, as it answers no ping (rpc/channel.cc). A server that answers pings may be syncing a
// commit; it gets the same time as CommitVersion in sync/resync.cc.
inline constexpr absl::Duration kSilenceMax = absl::Minutes(6);

// Starts a MirrorFile call. Raw bytes both ways: frames go through rpc/frame_codec.h. An operation
// that takes longer than `silence_max` ends the stream with kDeadlineExceeded.
absl::StatusOr<std::unique_ptr<MirrorStream>> StartMirrorStream(
    const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
    absl::Duration silence_max = kSilenceMax);

// `status` with the server's name before its message, and with its payloads.
absl::Status NameServer(const ClientOptions& options, const absl::Status& status);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_MIRROR_STREAM_H_
